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

// The activations of one block of N rows: 256 values (8 scales, 8 sums) from one row to the next.
struct Block32 {
  const int8_t* q;
  const float* scales;
  const int16_t* sums;
};

template <class Type, int N>
STOKER_INLINE void add_block_32(const Lines32& w, const Block32& x, Floats (&sums)[N]) {
  Ints v[8];
  Type::decode(w.lines, v);
  const Floats d = Type::scale(w.lines, w.header);
  STOKER_UNROLL for (int first = 0; first < N; first += kStep<N>) {
    Ints dots[kStep<N>];
    dots_32<Type, N>(v, x.q + first * 256, x.sums + first * 8, dots);
    STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) {
      const int row = first + t;
      const Floats da = floats(x.scales[row * 8]);
      if constexpr (Type::kHasMin) {
        const Floats s = floats(static_cast<float>(x.sums[row * 8]));
        sums[row] = fma(da, fma(d, to_floats(dots[t]), mul(Type::min(w.lines), s)), sums[row]);
      } else {
        sums[row] = fma(mul(d, da), to_floats(dots[t]), sums[row]);
      }
    }
  }
}

template <class Type>
struct Family32 {
  static constexpr int kRows = kTileRows;
  static constexpr int kBlockBytes = Type::kLines * kLineBytes;

  template <int N, bool kAhead>
  static void tile(const MatmulArgs& args, int64_t group, int64_t row) noexcept {
    const uint8_t* lines = group_start(args, group);
    const uint8_t* header = lines + args.k / 32 * kBlockBytes;
    const uint8_t* ahead = lines + args.group_bytes;
    Floats sums[kParts][N];
    clear(sums);
    for_blocks(
        args, row, [&](const Block32& x) __attribute__((always_inline)) {
          if (kAhead) prefetch_ahead<kBlockBytes + Type::kHeader>(ahead);
          for_parts<N>([&](int part) __attribute__((always_inline)) {
            add_block_32<Type, N>(part_of(lines, header, part), x, sums[part]);
          });
          lines += kBlockBytes;
          header += Type::kHeader;
        });
    store_rows(args, group, row, sums);
  }

  // One row is a question of memory speed, and that of reading in one ascending stream (docs/kernels.md): the headers
  // behind the lines wait for their turn, the integer sums meanwhile for the headers.
  static void one(const MatmulArgs& args) noexcept {
    const bool sums_fit = args.k / 32 * kLineBytes <= kMatmulScratchBytes;
    for (int64_t g = args.group_begin; g < args.group_end; ++g) {
      if (Type::kHeader == 0 || !sums_fit) {
        tile<1, false>(args, g, args.row_begin);
      } else {
        scale_dots(args, g, dots_of_group(args, g));
      }
    }
  }

 private:
  static STOKER_INLINE Lines32 part_of(const uint8_t* lines, const uint8_t* header, int part) {
    return {lines + part * kLineBytes / kParts, header + part * Type::kHeader / kParts};
  }

  // f(activations) for the blocks in ascending order. The last super-block may be shorter than 8 blocks.
  template <class F>
  static STOKER_INLINE void for_blocks(const MatmulArgs& args, int64_t row, F f) {
    const Activations& x = *args.x;
    const int64_t n_blocks = args.k / 32;
    for (int64_t s = 0; s * 8 < n_blocks; ++s) {
      const int64_t at = s * x.n + row;
      const int8_t* q = x.q32 + at * 256;
      const float* scales = x.d32 + at * 8;
      const int16_t* sums = x.sums32 + at * 8;
      const int here = n_blocks - 8 * s < 8 ? static_cast<int>(n_blocks - 8 * s) : 8;
      for (int j = 0; j < here; ++j) f({q + 32 * j, scales + j, sums + j});
    }
  }

  // f32(I) of all blocks of one row and one group to scratch; returns the end of the lines.
  static STOKER_INLINE const uint8_t* dots_of_group(const MatmulArgs& args, int64_t group) {
    const uint8_t* lines = group_start(args, group);
    auto* out = reinterpret_cast<float*>(args.scratch);
    for_blocks(
        args, args.row_begin, [&](const Block32& x) __attribute__((always_inline)) {
          STOKER_UNROLL for (int part = 0; part < kParts; ++part) {
            Ints v[8], dot[1];
            Type::decode(part_of(lines, nullptr, part).lines, v);
            dots_32<Type, 1>(v, x.q, x.sums, dot);
            store(out + part * kWidth, to_floats(dot[0]));
          }
          out += 16;
          lines += kBlockBytes;
        });
    return lines;
  }

  static STOKER_INLINE void scale_dots(const MatmulArgs& args, int64_t group, const uint8_t* header) {
    const auto* dots = reinterpret_cast<const float*>(args.scratch);
    Floats sums[kParts][1];
    clear(sums);
    for_blocks(
        args, args.row_begin, [&](const Block32& x) __attribute__((always_inline)) {
          STOKER_UNROLL for (int part = 0; part < kParts; ++part) {
            const Floats d = Type::scale(nullptr, part_of(nullptr, header, part).header);
            sums[part][0] = fma(mul(d, floats(x.scales[0])), load_floats(dots + part * kWidth), sums[part][0]);
          }
          dots += 16;
          header += Type::kHeader;
        });
    store_rows(args, group, args.row_begin, sums);
  }
};
