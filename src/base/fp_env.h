#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace stoker {

/// Sets the IEEE default floating-point mode for a scope: nearest even, denormals kept, no traps.
/// Other libraries in the process (or -ffast-math's start code) may have set another, which would change bits.
class FpEnvScope {
 public:
#if defined(__x86_64__)
  FpEnvScope() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~FpEnvScope() { _mm_setcsr(static_cast<unsigned>(saved_)); }
#elif defined(__aarch64__)
  FpEnvScope() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" ::"r"(uint64_t{0}));
  }
  ~FpEnvScope() { asm volatile("msr fpcr, %0" ::"r"(saved_)); }
#endif
  FpEnvScope(const FpEnvScope&) = delete;
  FpEnvScope& operator=(const FpEnvScope&) = delete;

 private:
  uint64_t saved_ = 0;
};

}  // namespace stoker
