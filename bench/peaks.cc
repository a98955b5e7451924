#include "bench/peaks.h"

#include <algorithm>
#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker::bench {

double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void read_all(const std::byte* data, size_t bytes) {
  using Words [[gnu::vector_size(64)]] = uint64_t;
  const auto* p = reinterpret_cast<const Words*>(data);
  Words sums[4] = {};
  for (size_t i = 0; i + 4 <= bytes / sizeof(Words); i += 4) {
    for (size_t j = 0; j < 4; ++j) sums[j] += p[i + j];
  }
  volatile uint64_t sink = (sums[0] + sums[1] + sums[2] + sums[3])[0];
  (void)sink;
}

#if defined(__x86_64__)
namespace {

constexpr int kChains = 12;  // Enough to hide the latency.
constexpr int64_t kRounds = 1'000'000;

// Best of a few runs of `round`, which does kChains instructions and must not be optimized away.
template <class F>
double per_second(double operations, F round) {
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    const double begin = thread_seconds();
    round();
    best = std::max(best, operations * kChains * static_cast<double>(kRounds) / (thread_seconds() - begin));
  }
  return best;
}

// The empty asm keeps every chain in a register and its instruction where it is.
__attribute__((target("avx512f,avx512vnni"))) void vpdpbusd() {
  __m512i c[kChains] = {}, a = _mm512_set1_epi8(1);
  for (int64_t i = 0; i < kRounds; ++i) {
    for (auto& x : c) {
      x = _mm512_dpbusd_epi32(x, a, a);
      asm volatile("" : "+v"(x));
    }
  }
}

__attribute__((target("avx512f"))) void vfmadd_512() {
  __m512 c[kChains] = {}, a = _mm512_set1_ps(1);
  for (int64_t i = 0; i < kRounds; ++i) {
    for (auto& x : c) {
      x = _mm512_fmadd_ps(a, a, x);
      asm volatile("" : "+v"(x));
    }
  }
}

// Only the multiplying instruction: a kernel needs more, to add up.
__attribute__((target("avx2"))) void vpmaddubsw() {
  __m256i c[kChains] = {}, a = _mm256_set1_epi8(1);
  for (int64_t i = 0; i < kRounds; ++i) {
    for (auto& x : c) {
      x = _mm256_maddubs_epi16(x, a);
      asm volatile("" : "+x"(x));
    }
  }
}

__attribute__((target("avx2,fma"))) void vfmadd_256() {
  __m256 c[kChains] = {}, a = _mm256_set1_ps(1);
  for (int64_t i = 0; i < kRounds; ++i) {
    for (auto& x : c) {
      x = _mm256_fmadd_ps(a, a, x);
      asm volatile("" : "+x"(x));
    }
  }
}

}  // namespace

double int8_peak(Isa isa) {
  if (isa == Isa::kAvx512) return per_second(128, vpdpbusd);
  return isa == Isa::kAvx2 ? per_second(64, vpmaddubsw) : 0;
}

double float_peak(Isa isa) {
  if (isa == Isa::kAvx512) return per_second(32, vfmadd_512);
  return isa == Isa::kAvx2 ? per_second(16, vfmadd_256) : 0;
}
#else
double int8_peak(Isa) { return 0; }
double float_peak(Isa) { return 0; }
#endif

}  // namespace stoker::bench
