// Types of 256-blocks with integer sub-scales, activations with one scale per 256 values:
//   I = sum over sub-blocks of scale * dot,  M = sum of minimum * (sum of the activations)    exact integers
//   sum = fma(da, fma(d, f32(I), -(dmin * f32(M))), sum)        without minimum: fma(da, d * f32(I), sum)
//
// A type (matmul_types_256.inc.h) says how the lines of a block become bytes and scales.

// The activations of one block of N rows, 256 values (16 sums, 1 scale) from one row to the next.
struct Block256 {
  const int8_t* q;
  const float* scales;
  const int16_t* sums;
};

// Sum over the sub-blocks of scale * dot, for the rows of one vector. Its share of the next group is fetched evenly
// spread: more at a time than the processor can have under way would stop it.
template <class Type, int N, Fetch kFetch>
STOKER_INLINE void totals_256(const uint8_t* lines, const Block256& x, Ahead& ahead, Ints (&totals)[N]) {
  alignas(64) int32_t factors[Type::kSubs][kWidth];
  STOKER_UNROLL for (int j = 0; j < Type::kSubs; ++j) store(factors[j], factor_of(Type::sub_scale(lines, j)));
  STOKER_UNROLL for (int t = 0; t < N; ++t) totals[t] = ints(0);
  const Starts<Type, N> starts(x.sums);
  constexpr int kSubsHere = Type::kSubs / 8, kWords = 8 / kSubsHere;  // In the 32 weights that are decoded at a time.
  for (int part = 0; part < 8 / Type::kPeriod; ++part) {
    STOKER_UNROLL for (int c = 0; c < Type::kPeriod; ++c) {
      if (kFetch == Fetch::kCached) fetch_rows<N>(x.q, part * Type::kPeriod + c);
      if (kFetch == Fetch::kAhead) ahead.template fetch<(Type::kLines * kLineBytes + Type::kHeader) / 8 / kParts>();
      Ints v[8];
      Type::decode(lines, part, c, v);
      STOKER_UNROLL for (int i = 0; i < kSubsHere; ++i) {
        const int sub = (part * Type::kPeriod + c) * kSubsHere + i;
        add_dots_256<Type, N>(v + i * kWords, sub, load(factors[sub]), x.q + sub * 4 * kWords, starts, totals);
      }
    }
  }
  finish_totals_256<Type, N>(lines, x.sums, totals);
}

// d * f32(I) or fma(d, f32(I), -(dmin * f32(M))), times da, added to the sums.
template <class Type, int N>
STOKER_INLINE void scale_totals_256(const uint8_t* lines, const uint8_t* header, const Block256& x,
                                    const Ints (&totals)[N], Floats (&sums)[N]) {
  const Floats d = Type::scale(lines, header);
  if constexpr (Type::kHasMin) {
    Ints mins[kPairs<Type>];
    pair_up<Type>([&](int j) { return Type::sub_min(lines, j); }, mins);
    STOKER_UNROLL for (int t = 0; t < N; ++t) {
      const Floats m = to_floats(weigh_sums<Type>(mins, x.sums + t * 16));
      sums[t] = fma(floats(x.scales[t]), fma_minus(d, to_floats(totals[t]), mul(Type::min(lines), m)), sums[t]);
    }
  } else {
    STOKER_UNROLL for (int t = 0; t < N; ++t) {
      sums[t] = fma(floats(x.scales[t]), mul(d, to_floats(totals[t])), sums[t]);
    }
  }
}

// f(lines, header, s) for the blocks of a group. Blocks 2 i and 2 i + 1 have their headers before them both, in one
// line.
template <class Type, class F>
STOKER_INLINE void for_blocks_256(const MatmulArgs& args, int64_t group, F f) {
  const uint8_t* lines = group_start(args, group);
  const uint8_t* headers = lines;
  for (int64_t s = 0; s < args.k / 256; ++s) {
    if (Type::kHeader != 0 && s % 2 == 0) {
      headers = lines;
      lines += kLineBytes;
    }
    f(lines, headers + s % 2 * Type::kHeader, s);
    lines += Type::kLines * kLineBytes;
  }
}

template <class Type>
struct Family256 {
  static constexpr int kRows = kTileRows, kStreamRows = kFewStream ? Type::kStream : 1;
  static constexpr int kBlockBytes = Type::kLines * kLineBytes;

  template <int N, Fetch kFetch>
  static void tile(const MatmulArgs& args, int64_t group, int64_t row) noexcept {
    const Activations& x = *args.x;
    Ahead ahead(args, group);
    Floats sums[kParts][N];
    clear(sums);
    for_blocks_256<Type>(
        args, group, [&](const uint8_t* lines, const uint8_t* header, int64_t s) __attribute__((always_inline)) {
          if (kFetch == Fetch::kStream) ahead.template fetch_if_spread<Type::kLines * kLineBytes + Type::kHeader>();
          if (Type::kHeader != 0 && kFetch == Fetch::kStream && s % 2 == 0) touch(header);
          if (kFetch == Fetch::kStream || Type::kJumps) touch_lines<Type::kLines>(lines);
          const int64_t at = s * x.n + row;
          const Block256 block{x.q256 + at * 256, x.d256 + at, x.sums256 + at * 16};
          // Four vectors of a 256-block do not fit into registers, not even those of one row.
          for_parts<(kParts <= 2 ? N : kTileRows)>([&](int part) __attribute__((always_inline)) {
            const uint8_t* lines_here = lines + part * kLineBytes / kParts;
            const uint8_t* header_here = header + part * Type::kHeader / kParts;
            Ints totals[N];
            totals_256<Type, N, kFetch>(lines_here, block, ahead, totals);
            scale_totals_256<Type, N>(lines_here, header_here, block, totals, sums[part]);
          });
        });
    store_rows(args, group, row, sums);
  }
};
