// Types of 32-blocks, activations with one scale per 32 values:
//   sum = fma(d * da, f32(I), sum)                              for blocks in ascending order
//   sum = fma(da, fma(d, f32(I), m * f32(S)), sum)              with a minimum; S is the sum of the activations
//
// A type (matmul_types_32.inc.h) says how the lines of a block become bytes.

// A block of one vector's rows: `lines` and `header` point at the first of them.
struct Lines32 {
  const uint8_t* lines;
  const uint8_t* header;
};

// The activations of one block of N rows: 256 values, and 8 of what belongs to a block, from one row to the next.
struct Block32 {
  const int8_t* q;
  const float* scales;
  const int32_t* starts;  // -kOffset * (sum of the activations): what the integer sums start from.
  const float* sums;      // For the minimum.
};

// What the products need of the sums of a super-block of N rows.
template <class Type, int N>
struct Sums32 {
  alignas(32) int32_t starts[N][8];
  alignas(32) float sums[N][8];

  STOKER_INLINE explicit Sums32(const int16_t* from) {
    STOKER_UNROLL for (int t = 0; t < N; ++t) {
      if constexpr (Type::kHasMin) eight_floats(from + t * 8, sums[t]);
      if constexpr (Type::kOffset != 0) eight_times(from + t * 8, -Type::kOffset, starts[t]);
    }
  }
};

template <class Type, int N>
STOKER_INLINE void add_block_32(const Lines32& w, const Block32& x, Floats (&sums)[N]) {
  Ints v[8];
  Type::decode(w.lines, v);
  const Floats d = Type::scale(w.lines, w.header);
  STOKER_UNROLL for (int first = 0; first < N; first += kStep<N>) {
    Ints dots[kStep<N>];
    STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) {
      dots[t] = Type::kOffset == 0 ? ints(0) : word_of(x.starts + (first + t) * 8);
    }
    dots_32<Type, N>(v, x.q + first * 256, dots);
    STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) {
      const int row = first + t;
      const Floats da = floats(x.scales[row * 8]);
      if constexpr (Type::kHasMin) {
        const Floats s = floats(x.sums[row * 8]);
        sums[row] = fma(da, fma(d, to_floats(dots[t]), mul(Type::min(w.lines), s)), sums[row]);
      } else {
        sums[row] = fma(mul(d, da), to_floats(dots[t]), sums[row]);
      }
    }
  }
}

template <class Type>
struct Family32 {
  static constexpr int kRows = kTileRows, kStreamRows = kFewStream ? Type::kStream : 1;
  static constexpr int kBlockBytes = Type::kLines * kLineBytes;

  template <int N, Fetch kFetch>
  static void tile(const MatmulArgs& args, int64_t group, int64_t row) noexcept {
    const Activations& x = *args.x;
    const int64_t n_blocks = args.k / 32;
    const uint8_t* lines = group_start(args, group);
    Ahead ahead(args, group);
    Floats sums[kParts][N];
    clear(sums);
    for (int64_t s = 0; s * 8 < n_blocks; ++s) {
      // The last super-block, and run of the weights, may be shorter than 8 blocks.
      const int here = n_blocks - 8 * s < 8 ? static_cast<int>(n_blocks - 8 * s) : 8;
      const int64_t at = s * x.n + row;
      const Sums32<Type, N> tables(x.sums32 + at * 8);
      const uint8_t* header = lines;
      if (kFetch == Fetch::kStream) touch_lines<8 * Type::kHeader / kLineBytes>(header);
      lines += (here * Type::kHeader + kLineBytes - 1) / kLineBytes * kLineBytes;
      for (int j = 0; j < here; ++j) {
        if (kFetch == Fetch::kCached) fetch_rows<N>(x.q32 + at * 256, j);
        if (kFetch == Fetch::kAhead) ahead.template fetch<kBlockBytes + Type::kHeader>();
        if (kFetch == Fetch::kStream) ahead.template fetch_if_spread<kBlockBytes + Type::kHeader>();
        const Block32 block{x.q32 + at * 256 + 32 * j, x.d32 + at * 8 + j, tables.starts[0] + j, tables.sums[0] + j};
        for_parts<N>([&](int part) __attribute__((always_inline)) {
          const Lines32 w{lines + part * kLineBytes / kParts, header + part * Type::kHeader / kParts};
          add_block_32<Type, N>(w, block, sums[part]);
        });
        lines += kBlockBytes;
        header += Type::kHeader;
      }
    }
    store_rows(args, group, row, sums);
  }
};
