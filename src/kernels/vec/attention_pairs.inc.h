// The inner loops for bf16: chains over the even and the odd terms of every 32, in the order of the AMX instruction.

STOKER_INLINE Floats even_values(Ints pairs) { return from_bits(shift_left_16(pairs)); }
STOKER_INLINE Floats odd_values(Ints pairs) { return from_bits(and_ints(pairs, ints(0xffff0000u))); }

template <int kQ, int kVectors>
__attribute__((noinline)) void score_pairs(const ScoreJob& job) noexcept {
  constexpr int kLines = lines_for(kVectors * kWidth * 4);
  Floats sum[kQ][kVectors];
  clear(sum);
  const auto* k = static_cast<const uint16_t*>(job.k);
  const float* q = job.q;
  Ahead ahead = job.ahead;
  for (int group = 0; group < job.dims; group += 32) {
    Floats even[kQ][kVectors], odd[kQ][kVectors];
    clear(even);
    clear(odd);
    for (int pair = 0; pair < 16; ++pair, k += job.stride, q += 2 * kQ) {
      STOKER_UNROLL for (int b = 0; b < kVectors; ++b) {
        const Ints pairs = load_ints(k + 2 * kWidth * b);
        STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
          even[i][b] = fma(floats(q[i]), even_values(pairs), even[i][b]);
          odd[i][b] = fma(floats(q[kQ + i]), odd_values(pairs), odd[i][b]);
        }
      }
      fetch<kLines>(ahead);
    }
    STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
      STOKER_UNROLL for (int b = 0; b < kVectors; ++b) sum[i][b] = add(sum[i][b], add(even[i][b], odd[i][b]));
    }
  }
  STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) store_floats(job.scores + kTile * i + kWidth * b, sum[i][b]);
  }
}

/// Positions p and p + 1 of all queries that see them.
template <int kQ, int kVectors>
STOKER_INLINE void add_pair(const ValueJob& job, int p, const uint16_t* v, Floats (&even)[kQ][kVectors],
                            Floats (&odd)[kQ][kVectors]) {
  const bool by_all = p >= job.common.begin && p + 1 < job.common.end;
  if (by_all) {
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) {
      const Ints pairs = load_ints(v + 2 * kWidth * b);
      STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
        even[i][b] = fma(floats(job.weights[kTile * i + p]), even_values(pairs), even[i][b]);
        odd[i][b] = fma(floats(job.weights[kTile * i + p + 1]), odd_values(pairs), odd[i][b]);
      }
    }
    return;
  }
  STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) {
      const Ints pairs = load_ints(v + 2 * kWidth * b);
      const float* weight = job.weights + kTile * i + p;
      if (contains(job.seen[i], p)) even[i][b] = fma(floats(weight[0]), even_values(pairs), even[i][b]);
      if (contains(job.seen[i], p + 1)) odd[i][b] = fma(floats(weight[1]), odd_values(pairs), odd[i][b]);
    }
  }
}

template <int kQ, int kVectors>
__attribute__((noinline)) void value_pairs(const ValueJob& job) noexcept {
  constexpr int kLines = lines_for(kVectors * kWidth * 4);
  Floats sum[kQ][kVectors];
  clear(sum);
  Ahead ahead = job.ahead;
  for (int group = job.all.begin / 32 * 32; group < job.all.end; group += 32) {
    Floats even[kQ][kVectors], odd[kQ][kVectors];
    clear(even);
    clear(odd);
    const int end = group + 32 < job.all.end ? group + 32 : job.all.end;
    for (int p = group > job.all.begin ? group : job.all.begin & ~1; p < end; p += 2) {
      add_pair(job, p, static_cast<const uint16_t*>(job.v) + p / 2 * job.stride, even, odd);
      fetch<kLines>(ahead);
    }
    STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
      STOKER_UNROLL for (int b = 0; b < kVectors; ++b) sum[i][b] = add(sum[i][b], add(even[i][b], odd[i][b]));
    }
  }
  merge_values(job, sum);
}
