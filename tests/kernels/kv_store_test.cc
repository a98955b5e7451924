#include <gtest/gtest.h>

#include <cstring>

#include "base/f16.h"
#include "kernels/kv_layout.h"
#include "tests/kernels/attention_data.h"
#include "tests/kernels/numbers.h"

namespace stoker::kernels {
namespace {

constexpr KvType kTypes[] = {KvType::kF16, KvType::kBf16, KvType::kF32, KvType::kQ8_0};

TEST(KvStore, SameBytesAsScalarForAllRuns) {
  for (KvType type : kTypes) {
    for (int dim : {8, 16, 40, 64, 72, 80, 128}) {
      const HeadShape shape{type, dim, dim};
      for (const Table* table : attention_tables()) {
        for (int64_t run : {1, 2, 3, 7, 16, 33, 64}) {
          for (int64_t begin : {0, 1, 30}) {
            KvPages expected(shape, 130), actual(shape, 130);
            expected.store(scalar_table(), begin, 130, 1);
            actual.store(*table, begin, 130, run);
            // Also the positions that were not stored: they belong to others.
            std::vector<std::byte> a, b;
            for (int64_t tile = 0; tile < 3; ++tile) {
              a.insert(a.end(), expected.k_tile(tile), expected.v_tile(tile) + kv_tile_bytes(type, dim));
              b.insert(b.end(), actual.k_tile(tile), actual.v_tile(tile) + kv_tile_bytes(type, dim));
            }
            ASSERT_TRUE(a == b) << isa_name(table->isa) << ' ' << name_of(shape) << " runs of " << run << " from "
                                << begin;
          }
        }
      }
    }
  }
}

TEST(KvStore, TouchesOnlyItsPositions) {
  for (KvType type : kTypes) {
    const HeadShape shape{type, 40, 40};
    for (const Table* table : attention_tables()) {
      for (int64_t begin = 0; begin < 64; begin += 3) {
        for (int64_t n : {1, 2, 3, 8, 16, 21, 61}) {
          if (begin + n > 64) continue;
          KvPages expected(shape, 64), actual(shape, 64);
          expected.store(scalar_table(), begin, begin + n, 1);
          actual.store(*table, begin, begin + n);
          const size_t bytes = static_cast<size_t>(kv_tile_bytes(type, 40)) * 2;
          ASSERT_EQ(std::memcmp(expected.k_tile(0), actual.k_tile(0), bytes), 0)
              << isa_name(table->isa) << ' ' << name_of(shape) << ", " << n << " from " << begin;
        }
      }
    }
  }
}

TEST(KvStore, ValuesLieWhereTheLayoutSays) {
  for (KvType type : kTypes) {
    const HeadShape shape{type, 40, 24};
    KvPages kv(shape, 64);
    kv.store(scalar_table(), 0, 64);
    const auto read = [&](const std::byte* tile, int dim, int64_t index, int64_t scale) {
      if (type == KvType::kQ8_0) {
        const auto* scales = reinterpret_cast<const uint16_t*>(tile + kv_scales_offset(dim));
        return static_cast<float>(reinterpret_cast<const int8_t*>(tile)[index]) * f16_to_f32(scales[scale]);
      }
      if (type == KvType::kF32) return reinterpret_cast<const float*>(tile)[index];
      const uint16_t value = reinterpret_cast<const uint16_t*>(tile)[index];
      return type == KvType::kF16 ? f16_to_f32(value) : bf16_to_f32(value);
    };
    for (int p = 0; p < 64; ++p) {
      for (int d = 0; d < kv_padded_dim(type, 40); ++d) {
        const float want = d < 40 ? as_stored(type, kv.k.data() + p * 40, 40, d) : 0.0f;
        EXPECT_EQ(read(kv.k_tile(0), 40, kv_k_index(type, d, p), kv_k_scale_index(d, p)), want);
      }
      for (int d = 0; d < kv_padded_dim(type, 24); ++d) {
        const float want = d < 24 ? as_stored(type, kv.v.data() + p * 24, 24, d) : 0.0f;
        const int64_t index = kv_v_index(type, kv_padded_dim(type, 24), d, p);
        EXPECT_EQ(read(kv.v_tile(0), 24, index, kv_v_scale_index(24, d, p)), want);
      }
    }
  }
}

TEST(KvStore, RoundsEveryNumberLikeTheScalar) {
  for (KvType type : kTypes) {
    const HeadShape shape{type, 64, 64};
    for (uint32_t seed = 0; seed < 20; ++seed) {
      KvPages expected(shape, 64), actual(shape, 64);
      expected.k = actual.k = odd_values(64 * 64, seed, seed % 2 == 1);
      expected.v = actual.v = odd_values(64 * 64, seed + 100, seed % 2 == 1);
      for (size_t i = 0; i < 64; ++i) {
        expected.k[i] = actual.k[i] = std::bit_cast<float>(0x27800000u + 0x1000u * static_cast<uint32_t>(i));  // 2^-48
        expected.v[i] = actual.v[i] = static_cast<float>(2049 + 2 * i);  // Ties of f16.
      }
      const bool finite = expected.store(scalar_table(), 0, 64);
      for (const Table* table : attention_tables()) {
        EXPECT_EQ(actual.store(*table, 0, 64), finite);
        const size_t bytes = static_cast<size_t>(kv_tile_bytes(type, 64)) * 2;
        EXPECT_EQ(std::memcmp(expected.k_tile(0), actual.k_tile(0), bytes), 0) << isa_name(table->isa) << ' ' << seed;
      }
    }
  }
}

TEST(KvStore, SaysWhenAValueIsNotFinite) {
  const float wilds[] = {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 65520.0f,
                         std::bit_cast<float>(0x7f7fffffu)};
  for (KvType type : kTypes) {
    const HeadShape shape{type, 40, 40};
    for (const Table* table : attention_tables()) {
      for (int64_t n : {1, 2, 5, 16, 33}) {
        for (float wild : wilds) {
          // 65520 rounds to infinity in f16, the largest float in bf16; its q8_0 scale would be infinite.
          const bool finite = type == KvType::kF32   ? std::isfinite(wild)
                              : type == KvType::kF16 ? false
                                                     : wild == 65520.0f;
          for (size_t i : {size_t{0}, static_cast<size_t>(n * 40 - 1), static_cast<size_t>(n * 20)}) {
            KvPages in_k(shape, 64), in_v(shape, 64);
            in_k.k[i] = in_v.v[i] = wild;
            EXPECT_EQ(in_k.store(*table, 0, n), finite) << isa_name(table->isa) << ' ' << name_of(shape) << ' ' << wild;
            EXPECT_EQ(in_v.store(*table, 0, n), finite) << isa_name(table->isa) << ' ' << name_of(shape) << ' ' << wild;
          }
        }
        KvPages good(shape, 64);
        good.k[3] = good.v[3] = 65519.0f;
        EXPECT_TRUE(good.store(*table, 0, n));
      }
    }
  }
}

}  // namespace
}  // namespace stoker::kernels
