// The functions of kernel_list.inc.
#pragma once

#include "src/device/all_reduce.h"
#include "src/device/codec_tiles.h"
#include "src/device/slice_kernels.h"
#include "src/device/state_kernels.h"
