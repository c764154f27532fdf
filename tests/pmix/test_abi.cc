// The hand-written declarations of PMIx's binary interface against PMIx's own header, where that is installed.
#include <gtest/gtest.h>

#include <cstddef>

#include "src/pmix/abi.h"

#if __has_include(<pmix.h>)
#include <pmix.h>
#define ONEHOP_HAS_PMIX_HEADER 1
#else
#define ONEHOP_HAS_PMIX_HEADER 0
#endif

namespace onehop::detail::pmix {
namespace {

#if ONEHOP_HAS_PMIX_HEADER
TEST(PmixAbi, IsThatOfTheHeader) {
  EXPECT_EQ(sizeof(Process), sizeof(pmix_proc_t));
  EXPECT_EQ(offsetof(Process, rank), offsetof(pmix_proc_t, rank));
  EXPECT_EQ(sizeof(Value), sizeof(pmix_value_t));
  EXPECT_EQ(offsetof(Value, count), offsetof(pmix_value_t, data));
  EXPECT_EQ(sizeof(Setting), sizeof(pmix_info_t));
  EXPECT_EQ(offsetof(Setting, flags), offsetof(pmix_info_t, flags));
  EXPECT_EQ(offsetof(Setting, value), offsetof(pmix_info_t, value));
  EXPECT_EQ(any_rank, PMIX_RANK_WILDCARD);
  EXPECT_EQ(for_all, PMIX_GLOBAL);
  EXPECT_EQ(Value::boolean, PMIX_BOOL);
  EXPECT_EQ(Value::number, PMIX_UINT32);
  EXPECT_EQ(Value::bytes, PMIX_BYTE_OBJECT);
  EXPECT_STREQ(collect_data, PMIX_COLLECT_DATA);
  EXPECT_STREQ(job_size, PMIX_JOB_SIZE);
  EXPECT_EQ(success, PMIX_SUCCESS);
  EXPECT_EQ(not_found, PMIX_ERR_NOT_FOUND);
}
#else
// The values that the header of PMIx 4.2 had on x86-64.
TEST(PmixAbi, HasTheSizesOfPmix4) {
  EXPECT_EQ(sizeof(Process), 260U);
  EXPECT_EQ(sizeof(Value), 32U);
  EXPECT_EQ(offsetof(Value, count), 8U);
  EXPECT_EQ(sizeof(Setting), 552U);
  EXPECT_EQ(offsetof(Setting, value), 520U);
}
#endif

}  // namespace
}  // namespace onehop::detail::pmix
