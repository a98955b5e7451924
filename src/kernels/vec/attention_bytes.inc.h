// The inner loops for q8_0: a value is its int8 times the scale of its block, which is exact, and then takes the place
// of an f16 in the chains.

/// How many vectors a block of n queries can have: accumulators, values, scales and one broadcast.
constexpr int byte_vectors_for(int n, int most) {
  int vectors = most;
  while (vectors > 1 && n * vectors + 2 * vectors + 1 > kRegisters) vectors /= 2;
  return vectors;
}

inline const uint16_t* scales_of(const std::byte* tile, int dim) {
  return reinterpret_cast<const uint16_t*>(tile + kv_scales_offset(dim));
}

/// acc[i][b] += x[i * kStride] * values[b].
template <int kQ, int kVectors, int kStride>
STOKER_INLINE void multiply_add_values(const float* x, const Floats (&values)[kVectors], Floats (&acc)[kQ][kVectors]) {
  STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
    const Floats v = floats(x[i * kStride]);
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) acc[i][b] = fma(v, values[b], acc[i][b]);
  }
}

/// `scales`: of block 0 and the job's first position.
template <int kQ, int kVectors>
__attribute__((noinline)) void score_bytes(const ScoreJob& job, const uint16_t* scales) noexcept {
  constexpr int kLines = lines_for(kVectors * kWidth);
  Floats acc[kQ][kVectors];
  clear(acc);
  const auto* k = static_cast<const int8_t*>(job.k);
  const float* q = job.q;
  Ahead ahead = job.ahead;
  for (int first = 0; first < job.dims; first += kKvBlock, scales += kTile) {
    Floats scale[kVectors];
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) scale[b] = load_halves(scales + kWidth * b);
    const int n = job.dims - first < kKvBlock ? job.dims - first : kKvBlock;
    for (int d = 0; d < n; ++d, k += job.stride, q += kQ) {
      Floats values[kVectors];
      STOKER_UNROLL for (int b = 0; b < kVectors; ++b) values[b] = mul(load_bytes(k + kWidth * b), scale[b]);
      multiply_add_values<kQ, kVectors, 1>(q, values, acc);
      fetch<kLines>(ahead);
    }
  }
  STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) store_floats(job.scores + kTile * i + kWidth * b, acc[i][b]);
  }
}

/// The values of one position. Load: ByteCache, or Eight of it where only eight exist.
template <class Load, int kVectors>
STOKER_INLINE void load_position(const int8_t* v, const float* scales, Floats (&values)[kVectors]) {
  STOKER_UNROLL for (int b = 0; b < kVectors; ++b) {
    values[b] = mul(Load::load(v + kWidth * b), floats(scales[b * kWidth / kKvBlock]));
  }
}

/// `scales`: [64][n_blocks], from the block of the job's first dimension on. That one is a multiple of the vectors'
/// width.
template <class Load, int kQ, int kVectors>
__attribute__((noinline)) void value_bytes(const ValueJob& job, const float* scales, int n_blocks) noexcept {
  constexpr int kLines = lines_for(kVectors * kWidth);
  Floats acc[kQ][kVectors], values[kVectors];
  clear(acc);
  const auto* v = static_cast<const int8_t*>(job.v);
  const auto ragged = [&](int begin, int end) {
    for (int p = begin; p < end; ++p) {
      load_position<Load, kVectors>(v + p * job.stride, scales + p * n_blocks, values);
      STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
        if (!contains(job.seen[i], p)) continue;
        const Floats weight = floats(job.weights[kTile * i + p]);
        STOKER_UNROLL for (int b = 0; b < kVectors; ++b) acc[i][b] = fma(weight, values[b], acc[i][b]);
      }
    }
  };
  ragged(job.all.begin, job.common.begin);
  Ahead ahead = job.ahead;
  for (int p = job.common.begin; p < job.common.end; ++p) {
    load_position<Load, kVectors>(v + p * job.stride, scales + p * n_blocks, values);
    multiply_add_values<kQ, kVectors, kTile>(job.weights + p, values, acc);
    fetch<kLines>(ahead);
  }
  ragged(job.common.end, job.all.end);
  merge_values(job, acc);
}

/// The scales of V in f32, where the keys were expanded: [64][n_blocks].
inline const float* expand_scales(const Work& w, const Tile& tile) {
  const int n = kTile * kv_blocks(w.args.v_dim);
  const uint16_t* scales = scales_of(tile.v, w.args.v_dim);
  for (int i = 0; i < n; i += kWidth) store_floats(w.k_panel + i, load_halves(scales + i));
  return w.k_panel;
}

/// Few queries: straight from the cache.
struct DirectBytes {
  static constexpr bool kBf16 = false;
  static constexpr int kBlock = kRegisters == 32 ? 8 : 4;

  static void scores(const Work& w, const Tile& tile) {
    const int dims = w.args.k_dim;
    const int64_t v_bytes = tile_bytes_of<ByteCache>(w.args.v_dim);
    for_blocks<kBlock>(w.args.n_queries, [&](int first, int count) {
      with_constant<1, kBlock>(count, [&](auto constant) {
        constexpr int kQ = decltype(constant)::value, kVectors = byte_vectors_for(kQ, kTile / kWidth);
        const int64_t step = v_bytes / dims / (kTile / (kVectors * kWidth));
        for (int p = 0; p < tile.seen.end; p += kVectors * kWidth) {
          if (p + kVectors * kWidth <= tile.seen.begin) continue;
          const ScoreJob job = {.q = w.q + first * w.layout.padded_k,
                                .k = reinterpret_cast<const int8_t*>(tile.k) + p,
                                .stride = kTile,
                                .dims = dims,
                                .scores = w.scores + first * kTile + p,
                                .ahead = {tile.v + p / kWidth / kVectors * step * dims, step}};
          score_bytes<kQ, kVectors>(job, scales_of(tile.k, dims) + p);
        }
      });
    });
  }

  template <class Load, int kQ, int kVectors>
  static void value_vectors(const Work& w, const Tile& tile, ValueJob job, const float* scales, int d) {
    const int64_t k_bytes = tile_bytes_of<ByteCache>(w.args.k_dim);
    job.v = reinterpret_cast<const int8_t*>(tile.v) + d;
    job.stride = w.args.v_dim;
    job.out += d;
    job.ahead = {tile.next_k + k_bytes * d / w.args.v_dim, k_bytes / kTile * kVectors * kWidth / w.args.v_dim};
    value_bytes<Load, kQ, kVectors>(job, scales + d / kKvBlock, kv_blocks(w.args.v_dim));
  }

  static void values(const Work& w, const Tile& tile) {
    const float* scales = expand_scales(w, tile);
    for_blocks<kBlock>(w.args.n_queries, [&](int first, int count) {
      const ValueJob job = value_job(w, first, count);
      if (job.all.begin >= job.all.end) return;
      with_constant<1, kBlock>(count, [&](auto constant) {
        constexpr int kQ = decltype(constant)::value, kVectors = byte_vectors_for(kQ, 8);
        const int dims = w.args.v_dim;
        int d = 0;
        for (; d + kVectors * kWidth <= dims; d += kVectors * kWidth)
          value_vectors<ByteCache, kQ, kVectors>(w, tile, job, scales, d);
        if constexpr (kVectors > 4) {
          for (; d + 4 * kWidth <= dims; d += 4 * kWidth) value_vectors<ByteCache, kQ, 4>(w, tile, job, scales, d);
        }
        if constexpr (kVectors > 2) {
          for (; d + 2 * kWidth <= dims; d += 2 * kWidth) value_vectors<ByteCache, kQ, 2>(w, tile, job, scales, d);
        }
        for (; d + kWidth <= dims; d += kWidth) value_vectors<ByteCache, kQ, 1>(w, tile, job, scales, d);
        if constexpr (kWidth > 8) {
          if (d < dims) value_vectors<Eight<ByteCache>, kQ, 1>(w, tile, job, scales, d);
        }
      });
    });
  }
};
