/* Errors that end the program. */
#pragma once

int made_rdma_error(int argc, char** argv); /* made_error of check.h */
