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

// Sum over the sub-blocks of scale * dot, for the rows of one vector. With kAhead its share of the next group is
// fetched, evenly spread: more at a time than the processor can have under way would stop it.
template <class Type, int N, bool kAhead>
STOKER_INLINE void totals_256(const uint8_t* lines, const Block256& x, const uint8_t*& ahead, Ints (&totals)[N]) {
  alignas(64) int32_t factors[Type::kSubs][kWidth];
  STOKER_UNROLL for (int j = 0; j < Type::kSubs; ++j) store(factors[j], factor_of(Type::sub_scale(lines, j)));
  STOKER_UNROLL for (int t = 0; t < N; ++t) totals[t] = ints(0);
  const Starts<Type, N> starts(x.sums);
  constexpr int kSubsHere = Type::kSubs / 8, kWords = 8 / kSubsHere;  // In the 32 weights that are decoded at a time.
  for (int part = 0; part < 8 / Type::kPeriod; ++part) {
    STOKER_UNROLL for (int c = 0; c < Type::kPeriod; ++c) {
      if (kAhead) prefetch_ahead<(Type::kLines * kLineBytes + Type::kHeader) / 8 / kParts>(ahead);
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
    Ints mins[8];
    pair_up<Type>([&](int j) { return Type::sub_min(lines, j); }, mins);
    STOKER_UNROLL for (int t = 0; t < N; ++t) {
      const Floats m = to_floats(weigh_sums(mins, x.sums + t * 16));
      sums[t] = fma(floats(x.scales[t]), fma_minus(d, to_floats(totals[t]), mul(Type::min(lines), m)), sums[t]);
    }
  } else {
    STOKER_UNROLL for (int t = 0; t < N; ++t) {
      sums[t] = fma(floats(x.scales[t]), mul(d, to_floats(totals[t])), sums[t]);
    }
  }
}

template <class Type>
struct Family256 {
  static constexpr int kRows = kTileRows;
  static constexpr int kBlockBytes = Type::kLines * kLineBytes;

  template <int N, bool kAhead>
  static void tile(const MatmulArgs& args, int64_t group, int64_t row) noexcept {
    const int64_t n_blocks = args.k / 256;
    const uint8_t* lines = group_start(args, group);
    const uint8_t* header = lines + n_blocks * kBlockBytes;
    const uint8_t* ahead = lines + args.group_bytes;
    Floats sums[kParts][N];
    clear(sums);
    for (int64_t s = 0; s < n_blocks; ++s) {
      const Block256 x = activations(args, s, row);
      if (Type::kJumps) touch_block(lines);
      for_parts<N>([&](int part) __attribute__((always_inline)) {
        Ints totals[N];
        totals_256<Type, N, kAhead>(lines_of(lines, part), x, ahead, totals);
        scale_totals_256<Type, N>(lines_of(lines, part), header_of(header, part), x, totals, sums[part]);
      });
      lines += kBlockBytes;
      header += Type::kHeader;
    }
    store_rows(args, group, row, sums);
  }

  // One row is a question of memory speed, and that of reading in one ascending stream (docs/kernels.md): the headers
  // behind the lines wait for their turn, the integer sums meanwhile for the headers.
  static void one(const MatmulArgs& args) noexcept {
    const bool totals_fit = args.k / 256 * kLineBytes <= kMatmulScratchBytes;
    for (int64_t g = args.group_begin; g < args.group_end; ++g) {
      if (Type::kHeader == 0 || !totals_fit) {
        tile<1, false>(args, g, args.row_begin);
      } else {
        one_group(args, g);
      }
    }
  }

 private:
  static STOKER_INLINE const uint8_t* lines_of(const uint8_t* lines, int part) {
    return lines + part * kLineBytes / kParts;
  }
  static STOKER_INLINE const uint8_t* header_of(const uint8_t* header, int part) {
    return header + part * Type::kHeader / kParts;
  }

  static STOKER_INLINE void touch_block(const uint8_t* lines) {
    STOKER_UNROLL for (int i = 0; i < Type::kLines; ++i) touch(lines + i * kLineBytes);
  }

  static STOKER_INLINE Block256 activations(const MatmulArgs& args, int64_t s, int64_t row) {
    const int64_t at = s * args.x->n + row;
    return {args.x->q256 + at * 256, args.x->d256 + at, args.x->sums256 + at * 16};
  }

  static STOKER_INLINE void one_group(const MatmulArgs& args, int64_t group) {
    const int64_t n_blocks = args.k / 256, row = args.row_begin;
    const uint8_t* lines = group_start(args, group);
    const uint8_t* none_ahead = nullptr;
    auto* waiting = reinterpret_cast<int32_t*>(args.scratch);
    for (int64_t s = 0; s < n_blocks; ++s) {
      if (Type::kJumps) touch_block(lines);
      for (int part = 0; part < kParts; ++part) {
        Ints totals[1];
        totals_256<Type, 1, false>(lines_of(lines, part), activations(args, s, row), none_ahead, totals);
        store(waiting + 16 * s + part * kWidth, totals[0]);
      }
      lines += kBlockBytes;
    }
    const uint8_t* header = lines;
    Floats sums[kParts][1];
    clear(sums);
    for (int64_t s = 0; s < n_blocks; ++s) {
      STOKER_UNROLL for (int part = 0; part < kParts; ++part) {
        const Ints totals[1] = {load(waiting + 16 * s + part * kWidth)};
        scale_totals_256<Type, 1>(nullptr, header_of(header, part), activations(args, s, row), totals, sums[part]);
      }
      header += Type::kHeader;
    }
    store_rows(args, group, row, sums);
  }
};
