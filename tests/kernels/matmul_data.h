// Matrices, activations and outputs for the tests of matrix products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/table.h"
#include "tests/kernels/reference_dot.h"

namespace stoker::testing {

/// Memory on a 64-byte line with sentinel bytes behind it.
class Lines {
 public:
  explicit Lines(size_t bytes, std::byte fill = std::byte{0xa5});
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  template <class Value>
  Value* as() {
    return reinterpret_cast<Value*>(data_);
  }
  size_t size() const { return size_; }
  bool guard_intact() const;

 private:
  std::vector<std::byte> storage_;
  std::byte* data_;
  size_t size_;
  std::byte fill_;
};

/// Codes are random, all extreme, or both by turns; scales likewise.
enum class Fill { kRandom, kExtreme, kMixed };

/// Rows in file layout. No scale is infinite or NaN, so every product is a number.
std::vector<std::byte> random_rows(const FileType& type, int64_t n_rows, int64_t k, Fill fill, uint32_t seed);

/// The same rows in R16, packed by `table`; rows of padding included.
Lines pack_rows(const kernels::Table& table, const FileType& type, const std::vector<std::byte>& rows, int64_t n_rows,
                int64_t k);

/// Activations with every form filled. The values of the forms are unrelated to each other: kernels only read.
class RandomActivations {
 public:
  RandomActivations(int64_t n, int64_t k, Fill fill, uint32_t seed);
  const kernels::Activations& get() const { return view_; }

 private:
  std::vector<float> f32_, d256_, d32_;
  std::vector<int8_t> q256_, q32_;
  std::vector<int16_t> sums256_, sums32_;
  kernels::Activations view_;
};

/// The columns to test: with one block, several, a last super-block that is cut (32-blocks), odd numbers (BF16).
std::vector<int64_t> columns_of(const FileType& type);

inline bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace stoker::testing
