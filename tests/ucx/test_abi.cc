// The hand-written declarations of UCX's binary interface against UCX's own headers, where they are installed.
#include <gtest/gtest.h>

#include <cstddef>

#include "src/ucx/abi.h"

#define ONEHOP_HAS_UCX_HEADERS 0
#if __has_include(<ucp/api/ucp.h>)
#include <ucp/api/ucp.h>
#if UCP_API_VERSION >= UCP_VERSION(1, 18)
#undef ONEHOP_HAS_UCX_HEADERS
#define ONEHOP_HAS_UCX_HEADERS 1
#endif
#endif

namespace onehop::detail::ucx {
namespace {

#if ONEHOP_HAS_UCX_HEADERS

// An offset of ours must be theirs; structures may have grown at their ends.
#define SAME(Ours, mine, Theirs, yours) EXPECT_EQ(offsetof(Ours, mine), offsetof(Theirs, yours))

TEST(UcxAbi, StructuresLieAsInTheHeaders) {
  EXPECT_EQ(sizeof(Status), sizeof(ucs_status_t));
  SAME(ContextParams, features, ucp_params_t, features);
  SAME(ContextParams, mt_workers_shared, ucp_params_t, mt_workers_shared);
  SAME(WorkerParams, thread_mode, ucp_worker_params_t, thread_mode);
  SAME(WorkerParams, am_alignment, ucp_worker_params_t, am_alignment);
  SAME(WorkerAttributes, address, ucp_worker_attr_t, address);
  SAME(WorkerAttributes, address_length, ucp_worker_attr_t, address_length);
  SAME(EndParams, address, ucp_ep_params_t, address);
  SAME(EndParams, error_mode, ucp_ep_params_t, err_mode);
  SAME(EndParams, error_handler, ucp_ep_params_t, err_handler);
  SAME(EndParams, user_data, ucp_ep_params_t, user_data);
  SAME(RequestParams, field_mask, ucp_request_param_t, op_attr_mask);
  SAME(RequestParams, flags, ucp_request_param_t, flags);
  SAME(RequestParams, call, ucp_request_param_t, cb);
  SAME(RequestParams, user_data, ucp_request_param_t, user_data);
  SAME(RequestParams, memory, ucp_request_param_t, memh);
  SAME(HandlerParams, id, ucp_am_handler_param_t, id);
  SAME(HandlerParams, flags, ucp_am_handler_param_t, flags);
  SAME(HandlerParams, call, ucp_am_handler_param_t, cb);
  SAME(HandlerParams, argument, ucp_am_handler_param_t, arg);
  SAME(MapParams, address, ucp_mem_map_params_t, address);
  SAME(MapParams, length, ucp_mem_map_params_t, length);
#ifdef UCP_ENTITY_NAME_MAX
  SAME(EndAttributes, remote, ucp_ep_attr_t, remote_sockaddr);
#endif
}

TEST(UcxAbi, ConstantsAreThoseOfTheHeaders) {
  EXPECT_EQ(static_cast<int>(Status::in_progress), UCS_INPROGRESS);
  EXPECT_EQ(static_cast<int>(Status::no_device), UCS_ERR_NO_DEVICE);
  EXPECT_EQ(static_cast<int>(Status::unreachable), UCS_ERR_UNREACHABLE);
  EXPECT_EQ(static_cast<int>(Status::canceled), UCS_ERR_CANCELED);
  EXPECT_EQ(feature_rma, UCP_FEATURE_RMA);
  EXPECT_EQ(feature_messages, UCP_FEATURE_AM);
  EXPECT_EQ(ContextParams::has_features, UCP_PARAM_FIELD_FEATURES);
  EXPECT_EQ(ContextParams::has_mt_workers_shared, UCP_PARAM_FIELD_MT_WORKERS_SHARED);
  EXPECT_EQ(WorkerParams::has_thread_mode, UCP_WORKER_PARAM_FIELD_THREAD_MODE);
  EXPECT_EQ(static_cast<int>(ThreadMode::serialized), UCS_THREAD_MODE_SERIALIZED);
  EXPECT_EQ(WorkerAttributes::has_address, UCP_WORKER_ATTR_FIELD_ADDRESS);
  EXPECT_EQ(EndParams::has_address, UCP_EP_PARAM_FIELD_REMOTE_ADDRESS);
  EXPECT_EQ(EndParams::has_error_mode, UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE);
  EXPECT_EQ(EndParams::has_error_handler, UCP_EP_PARAM_FIELD_ERR_HANDLER);
  EXPECT_EQ(static_cast<int>(ErrorHandling::peer), UCP_ERR_HANDLING_MODE_PEER);
  EXPECT_EQ(RequestParams::has_callback, UCP_OP_ATTR_FIELD_CALLBACK);
  EXPECT_EQ(RequestParams::has_user_data, UCP_OP_ATTR_FIELD_USER_DATA);
  EXPECT_EQ(RequestParams::has_flags, UCP_OP_ATTR_FIELD_FLAGS);
  EXPECT_EQ(RequestParams::eager, UCP_AM_SEND_FLAG_EAGER);
  EXPECT_EQ(RequestParams::copy_header, UCP_AM_SEND_FLAG_COPY_HEADER);
  EXPECT_EQ(RequestParams::force_close, UCP_EP_CLOSE_FLAG_FORCE);
  EXPECT_EQ(HandlerParams::has_id, UCP_AM_HANDLER_PARAM_FIELD_ID);
  EXPECT_EQ(HandlerParams::has_flags, UCP_AM_HANDLER_PARAM_FIELD_FLAGS);
  EXPECT_EQ(HandlerParams::has_call, UCP_AM_HANDLER_PARAM_FIELD_CB);
  EXPECT_EQ(HandlerParams::has_argument, UCP_AM_HANDLER_PARAM_FIELD_ARG);
  EXPECT_EQ(HandlerParams::whole_message, UCP_AM_FLAG_WHOLE_MSG);
  EXPECT_EQ(MapParams::has_address, UCP_MEM_MAP_PARAM_FIELD_ADDRESS);
  EXPECT_EQ(MapParams::has_length, UCP_MEM_MAP_PARAM_FIELD_LENGTH);
}

#else

TEST(UcxAbi, StructuresLieAsInTheHeaders) { GTEST_SKIP() << "UCX's headers, 1.18 or newer, are not installed"; }

#endif

}  // namespace
}  // namespace onehop::detail::ucx
