#include "engine/bench_peaks.h"

#include <algorithm>
#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace stoker::engine {

double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

namespace {

/// Whole words of 64 bits, one of each line; `kPages` pages side by side.
template <int64_t kPages>
uint64_t sum_lines(const std::byte* data, int64_t bytes) {
  constexpr int64_t kPage = 4096, kLine = 64;
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  uint64_t sum = 0;
  for (int64_t at = 0; at < bytes; at += kPages * kPage) {
    for (int64_t line = at; line < at + kPage; line += kLine) {
      for (int64_t page = 0; page < kPages; ++page) sum += words[(line + page * kPage) / 8];
    }
  }
  return sum;
}

}  // namespace

void read_all(const std::byte* data, size_t bytes, ReadOrder order) {
  const auto n = static_cast<int64_t>(bytes);
  volatile uint64_t sink = order == ReadOrder::kPages ? sum_lines<kReadUnit / 4096>(data, n) : sum_lines<1>(data, n);
  (void)sink;
}

namespace {

struct Loop {
  void (*run)(int64_t rounds) = nullptr;
  double operations = 0;  ///< Per round.
};

double per_second(const Loop& loop, int64_t rounds) {
  if (!loop.run) return 0;
  constexpr int kParts = 5;
  double best = 0;
  for (int part = 0; part < kParts; ++part) {
    const int64_t n = std::max<int64_t>(1, rounds / kParts);
    const double begin = thread_seconds();
    loop.run(n);
    const double seconds = std::max(thread_seconds() - begin, 1e-9);
    best = std::max(best, loop.operations * static_cast<double>(n) / seconds);
  }
  return best;
}

// In all loops the empty asm keeps every chain in a register and its instruction where it is; there are enough chains
// to hide the latency.
void multiply_int(int64_t rounds) {
  int32_t chains[8] = {}, a = 3, b = 1;
  for (int64_t i = 0; i < rounds; ++i) {
    for (auto& x : chains) {
      x = static_cast<int32_t>(static_cast<uint32_t>(x) * static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
      asm volatile("" : "+r"(x));
    }
  }
}

#if defined(__x86_64__)
#define STOKER_FLOAT_REGISTER "x"
#elif defined(__aarch64__)
#define STOKER_FLOAT_REGISTER "w"
#endif

#ifdef STOKER_FLOAT_REGISTER
void multiply_float(int64_t rounds) {
  float chains[8] = {}, a = 0.5f, b = 1;
  for (int64_t i = 0; i < rounds; ++i) {
    for (auto& x : chains) {
      x = x * a + b;
      asm volatile("" : "+" STOKER_FLOAT_REGISTER(x));
    }
  }
}
#endif

#if defined(__x86_64__)

constexpr int kChains = 12;

__attribute__((target("avx512f,avx512vnni"))) void vpdpbusd(int64_t rounds) {
  __m512i c[kChains] = {}, a = _mm512_set1_epi8(1);
  for (int64_t i = 0; i < rounds; ++i) {
    for (auto& x : c) {
      x = _mm512_dpbusd_epi32(x, a, a);
      asm volatile("" : "+v"(x));
    }
  }
}

__attribute__((target("avx2,avxvnni"))) void vpdpbusd_256(int64_t rounds) {
  __m256i c[kChains] = {}, a = _mm256_set1_epi8(1);
  for (int64_t i = 0; i < rounds; ++i) {
    for (auto& x : c) {
      x = _mm256_dpbusd_avx_epi32(x, a, a);
      asm volatile("" : "+x"(x));
    }
  }
}

// Only the multiplying instruction: a kernel needs more, to add up.
__attribute__((target("avx2"))) void vpmaddubsw(int64_t rounds) {
  __m256i c[kChains] = {}, a = _mm256_set1_epi8(1);
  for (int64_t i = 0; i < rounds; ++i) {
    for (auto& x : c) {
      x = _mm256_maddubs_epi16(x, a);
      asm volatile("" : "+x"(x));
    }
  }
}

__attribute__((target("avx512f"))) void vfmadd_512(int64_t rounds) {
  __m512 c[kChains] = {}, a = _mm512_set1_ps(1);
  for (int64_t i = 0; i < rounds; ++i) {
    for (auto& x : c) {
      x = _mm512_fmadd_ps(a, a, x);
      asm volatile("" : "+v"(x));
    }
  }
}

__attribute__((target("avx2,fma"))) void vfmadd_256(int64_t rounds) {
  __m256 c[kChains] = {}, a = _mm256_set1_ps(1);
  for (int64_t i = 0; i < rounds; ++i) {
    for (auto& x : c) {
      x = _mm256_fmadd_ps(a, a, x);
      asm volatile("" : "+x"(x));
    }
  }
}

// Plain asm, as compilers disagree about the intrinsics; nothing else here touches tiles.
__attribute__((target("amx-tile,amx-int8"))) void tdpbssd(int64_t rounds) {
  struct alignas(64) Config {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static const Config config;
  static_assert(sizeof(Config) == 64);
  asm volatile("ldtilecfg %0" ::"m"(config));  // which clears all tiles
  for (int64_t i = 0; i < rounds; ++i) {
    asm volatile(
        "tdpbssd %tmm7, %tmm6, %tmm0\n tdpbssd %tmm7, %tmm6, %tmm1\n tdpbssd %tmm7, %tmm6, %tmm2\n"
        "tdpbssd %tmm7, %tmm6, %tmm3\n tdpbssd %tmm7, %tmm6, %tmm4\n tdpbssd %tmm7, %tmm6, %tmm5\n");
  }
  asm volatile("tilerelease");
}

Loop int8_loop(Isa isa) {
  if (isa == Isa::kAmx) return {tdpbssd, 6 * 2 * 16 * 16 * 64};
  if (isa == Isa::kAvx512) return {vpdpbusd, kChains * 128};
  if (isa == Isa::kAvxVnni) return {vpdpbusd_256, kChains * 64};
  return isa == Isa::kAvx2 ? Loop{vpmaddubsw, kChains * 64} : Loop{};
}

Loop float_loop(Isa isa) {
  if (isa == Isa::kAmx || isa == Isa::kAvx512) return {vfmadd_512, kChains * 32};
  return isa == Isa::kAvx2 || isa == Isa::kAvxVnni ? Loop{vfmadd_256, kChains * 16} : Loop{};
}

#elif defined(__aarch64__)

constexpr int kChains = 16;

__attribute__((target("arch=armv8.2-a+dotprod"))) void sdot(int64_t rounds) {
  int32x4_t c[kChains] = {};
  const int8x16_t a = vdupq_n_s8(1);
  for (int64_t i = 0; i < rounds; ++i) {
    for (auto& x : c) {
      x = vdotq_s32(x, a, a);
      asm volatile("" : "+w"(x));
    }
  }
}

__attribute__((target("arch=armv8.2-a+i8mm"))) void smmla(int64_t rounds) {
  int32x4_t c[kChains] = {};
  const int8x16_t a = vdupq_n_s8(1);
  for (int64_t i = 0; i < rounds; ++i) {
    for (auto& x : c) {
      x = vmmlaq_s32(x, a, a);
      asm volatile("" : "+w"(x));
    }
  }
}

void fmla(int64_t rounds) {
  float32x4_t c[kChains] = {};
  const float32x4_t a = vdupq_n_f32(1);
  for (int64_t i = 0; i < rounds; ++i) {
    for (auto& x : c) {
      x = vfmaq_f32(x, a, a);
      asm volatile("" : "+w"(x));
    }
  }
}

Loop int8_loop(Isa isa) {
  if (isa == Isa::kNeonI8mm) return {smmla, kChains * 64};
  return isa == Isa::kNeon ? Loop{sdot, kChains * 32} : Loop{};
}

Loop float_loop(Isa isa) { return isa == Isa::kNeonI8mm || isa == Isa::kNeon ? Loop{fmla, kChains * 8} : Loop{}; }

#else

void multiply_float(int64_t) {}
Loop int8_loop(Isa) { return {}; }
Loop float_loop(Isa) { return {}; }

#endif

}  // namespace

double int8_peak(Isa isa, int64_t rounds) {
  return per_second(isa == Isa::kScalar ? Loop{multiply_int, 16} : int8_loop(isa), rounds);
}

double float_peak(Isa isa, int64_t rounds) {
  return per_second(isa == Isa::kScalar ? Loop{multiply_float, 16} : float_loop(isa), rounds);
}

}  // namespace stoker::engine
