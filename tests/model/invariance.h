// Promises P1 and P2: the bits of a row of logits depend on the tokens of its sequence alone. What its tests share.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/model/golden.h"

namespace stoker::model::testing {

using Rows = std::vector<std::vector<float>>;

inline std::vector<int32_t> text(int64_t n_vocab, size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(n);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % static_cast<uint32_t>(n_vocab));
  return tokens;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline void expect_same(const Rows& got, const Rows& want, const std::string& how) {
  ASSERT_EQ(got.size(), want.size());
  size_t differ = 0;
  for (size_t i = 0; i < got.size(); ++i) differ += !same_bits(got[i], want[i]);
  EXPECT_EQ(differ, 0u) << how << ": rows differ, of " << got.size();
}

/// The reference of a model and text: one token at a time, scalar kernels, one thread, pages in order.
inline Rows alone(const std::string& name, const std::vector<int32_t>& tokens,
                  kernels::KvType kv = kernels::KvType::kF16, Isa isa = Isa::kScalar) {
  Loaded loaded(tiny_path(name), {.isa = isa, .threads = 1, .kv = kv});
  return all_logits(loaded, tokens, 1);
}

}  // namespace stoker::model::testing
