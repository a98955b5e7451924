#include "tests/kernels/matmul_data.h"

#include <algorithm>
#include <bit>
#include <random>

#include "base/f16.h"

namespace stoker::testing {
namespace {

constexpr size_t kGuard = 128;

template <class Value>
void put(std::byte* at, Value value) {
  std::memcpy(at, &value, sizeof value);
}

// Mostly ordinary; sometimes zero, denormal, the largest.
uint16_t random_half(std::mt19937& random, Fill fill) {
  const auto sign = static_cast<uint16_t>(random() % 2 << 15);
  const uint32_t kind = random() % 16;
  if (fill == Fill::kExtreme || (fill == Fill::kMixed && kind < 4)) {
    const uint16_t extremes[] = {0x7bff, 0x0000, 0x0001, 0x03ff, 0x7bff, 0x0400};
    return static_cast<uint16_t>(sign | extremes[random() % 6]);
  }
  return static_cast<uint16_t>(sign | (0x1000 + random() % 0x2000));
}

uint32_t random_f32_bits(std::mt19937& random, Fill fill) {
  const uint32_t sign = random() % 2 << 31;
  if (fill == Fill::kExtreme || (fill == Fill::kMixed && random() % 8 == 0)) {
    const uint32_t extremes[] = {0x00000001, 0x007fffff, 0x00800000, 0x00000000, 0x5a000000, 0x3f800001};
    return sign | extremes[random() % 6];
  }
  return sign | (0x3c000000 + random() % 0x04000000);
}

void fill_codes(std::byte* block, int bytes, Fill fill, std::mt19937& random) {
  const bool extreme = fill == Fill::kExtreme || (fill == Fill::kMixed && random() % 3 == 0);
  const std::byte extremes[] = {std::byte{0x00}, std::byte{0xff}, std::byte{0x80}, std::byte{0x7f}};
  const std::byte same = extremes[random() % 4];
  for (int i = 0; i < bytes; ++i) block[i] = extreme ? same : static_cast<std::byte>(random() % 256);
}

void fill_block(const FileType& type, std::byte* block, Fill fill, std::mt19937& random) {
  fill_codes(block, type.bytes, fill, random);
  switch (type.type) {
    case gguf::TensorType::kF32:
      return put(block, random_f32_bits(random, fill));
    case gguf::TensorType::kBF16:
      return put(block, static_cast<uint16_t>(random_f32_bits(random, fill) >> 16));
    case gguf::TensorType::kF16:
      return put(block, random_half(random, fill));
    case gguf::TensorType::kMXFP4: {
      const uint8_t extremes[] = {0, 1, 2, 200, 90};
      const bool extreme = fill == Fill::kExtreme || (fill == Fill::kMixed && random() % 4 == 0);
      return put(block, extreme ? extremes[random() % 5] : static_cast<uint8_t>(118 + random() % 8));
    }
    default:
      put(block + type.scale_at, random_half(random, fill));
      if (type.minimum_at >= 0) put(block + type.minimum_at, random_half(random, fill));
  }
}

// int8 values of `n * ns` super-blocks with scales and sums per `per` values; zeros beyond column k.
void fill_form(int64_t n, int64_t k, int per, int sum_of, Fill fill, std::mt19937& random, std::vector<int8_t>& q,
               std::vector<float>& d, std::vector<int16_t>& sums) {
  const int64_t entries = (k + 255) / 256 * n;
  q.assign(static_cast<size_t>(entries * 256), 0);
  for (int64_t i = 0; i < entries * 256; ++i) {
    if (i / 256 / n * 256 + i % 256 >= k) continue;
    const bool extreme = fill == Fill::kExtreme || (fill == Fill::kMixed && i / 32 % 3 == 0);
    const int run_sign = (i / 64 * 2654435761u) % 7 < 3 ? -127 : 127;
    q[static_cast<size_t>(i)] = static_cast<int8_t>(extreme ? run_sign : static_cast<int>(random() % 255) - 127);
  }
  d.clear();
  for (int64_t i = 0; i < entries * 256; i += per) {
    const bool beyond = i / 256 / n * 256 + i % 256 >= k;
    const float scales[] = {0x1p-130f, 0x1p20f, 0.0f, 0x1p-20f};
    const bool extreme = fill == Fill::kExtreme || (fill == Fill::kMixed && random() % 8 == 0);
    const float ordinary = static_cast<float>(random() % 100000 + 1) * 1e-6f;
    d.push_back(beyond ? 0.0f : extreme ? scales[random() % 4] : ordinary);
  }
  sums.clear();
  for (int64_t i = 0; i < entries * 256; i += sum_of) {
    int sum = 0;
    for (int64_t j = i; j < i + sum_of; ++j) sum += q[static_cast<size_t>(j)];
    sums.push_back(static_cast<int16_t>(sum));
  }
}

}  // namespace

Lines::Lines(size_t bytes, std::byte fill) : storage_(bytes + 64 + kGuard, fill), size_(bytes), fill_(fill) {
  const auto address = reinterpret_cast<uintptr_t>(storage_.data());
  data_ = storage_.data() + (64 - address % 64) % 64;
}

bool Lines::guard_intact() const {
  return std::all_of(data_ + size_, data_ + size_ + kGuard, [&](std::byte b) { return b == fill_; });
}

std::vector<std::byte> random_rows(const FileType& type, int64_t n_rows, int64_t k, Fill fill, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> rows(static_cast<size_t>(n_rows * row_bytes(type, k)));
  for (size_t at = 0; at < rows.size(); at += static_cast<size_t>(type.bytes)) {
    fill_block(type, rows.data() + at, fill, random);
  }
  return rows;
}

Lines pack_rows(const kernels::Table& table, const FileType& type, const std::vector<std::byte>& rows, int64_t n_rows,
                int64_t k) {
  const int64_t group_bytes = kernels::group_bytes(type.type, k);
  const int64_t n_groups = (n_rows + 15) / 16;
  Lines packed(static_cast<size_t>(n_groups * group_bytes));
  for (int64_t g = 0; g < n_groups; ++g) {
    table.pack[static_cast<size_t>(type.type)]({.rows = rows.data() + g * 16 * row_bytes(type, k),
                                                .row_bytes = row_bytes(type, k),
                                                .n_rows = static_cast<int>(std::min<int64_t>(16, n_rows - g * 16)),
                                                .k = k,
                                                .group = packed.data() + g * group_bytes});
  }
  return packed;
}

RandomActivations::RandomActivations(int64_t n, int64_t k, Fill fill, uint32_t seed) {
  std::mt19937 random(seed);
  const int64_t stride = k + 5;  // Not the row length, to see it used.
  for (int64_t i = 0; i < n * stride; ++i) f32_.push_back(std::bit_cast<float>(random_f32_bits(random, fill)));
  fill_form(n, k, 256, 16, fill, random, q256_, d256_, sums256_);
  fill_form(n, k, 32, 32, fill, random, q32_, d32_, sums32_);
  view_ = {.n = n,
           .k = k,
           .f32 = f32_.data(),
           .f32_stride = stride,
           .q256 = q256_.data(),
           .d256 = d256_.data(),
           .sums256 = sums256_.data(),
           .q32 = q32_.data(),
           .d32 = d32_.data(),
           .sums32 = sums32_.data()};
}

std::vector<int64_t> columns_of(const FileType& type) {
  if (type.weights == 256) return {256, 512, 2816};
  if (type.weights == 32) return {32, 64, 256, 288, 576, 2880};
  return {1, 31, 32, 288, 577, 2880};
}

}  // namespace stoker::testing
