#include "base/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

class HugePages : public ::testing::Test {
 protected:
  void set(const std::string& text) {
    const auto folder = root_ / "sys/kernel/mm/transparent_hugepage";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "enabled") << text;
  }
  std::string refusal() const { return huge_pages_refusal(root_.string()); }
  ~HugePages() override { std::filesystem::remove_all(root_); }

 private:
  std::filesystem::path root_ = std::filesystem::path(::testing::TempDir()) / "stoker_huge_pages";
};

TEST_F(HugePages, WhatTheSystemSays) {
  EXPECT_NE(refusal().find("has none"), std::string::npos);
  set("always madvise [never]\n");
  EXPECT_NE(refusal().find("says never"), std::string::npos);
  set("[always] madvise never\n");
  EXPECT_EQ(refusal(), "");
  set("always [madvise] never\n");
  EXPECT_EQ(refusal(), "");
}

TEST_F(HugePages, DeniedToTheProcess) {
  set("always [madvise] never\n");
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  EXPECT_NE(refusal().find("denied to this process"), std::string::npos);
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
  EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace stoker
