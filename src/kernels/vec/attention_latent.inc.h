// Attention whose values are the first dimensions of the keys (latents), for the many queries that share them. A tile
// is expanded to f32 once, [dimension][position]. Scores have positions as lanes, as elsewhere; for the values lanes
// are queries, so that nothing of the tile has to be transposed: a value is broadcast, the weights are turned instead.

/// bf16: pairs of dimensions.
struct PairCache {
  using Value = uint16_t;
};
template <class Cache>
constexpr bool kIsPairs = false;
template <>
constexpr bool kIsPairs<PairCache> = true;

/// Of a K tile.
template <class Cache>
inline void expand_tile(int dims, const Tile& tile, float* to) {
  using Value = typename Cache::Value;
  const auto* k = reinterpret_cast<const Value*>(tile.k);
  for (int p = tile.seen.begin / kWidth * kWidth; p < tile.seen.end; p += kWidth) {
    if constexpr (kIsPairs<Cache>) {
      for (int d = 0; d < dims; d += 2) {
        const Ints pairs = load_ints(k + kv_k_index(KvType::kBf16, d, p));
        store_floats(to + d * kTile + p, even_values(pairs));
        store_floats(to + (d + 1) * kTile + p, odd_values(pairs));
      }
    } else {
      for (int d = 0; d < dims; ++d) {
        Floats v = Cache::load(k + d * kTile + p);
        if constexpr (sizeof(Value) == 1) v = mul(v, load_halves(scales_of(tile.k, dims) + kv_k_scale_index(d, p)));
        store_floats(to + d * kTile + p, v);
      }
    }
  }
}

/// Dimensions [d, d + kWidth) of a row; of those that the file's head lacks, what is there.
template <class Cache>
STOKER_INLINE Floats row_values(const Work& w, const std::byte* tile, int row, int d) {
  using Value = typename Cache::Value;
  const int dims = w.args.k_dim;
  if constexpr (kIsPairs<Cache>) {
    const auto* at = reinterpret_cast<const uint16_t*>(tile) + (row / 2 * w.layout.padded_k + d) * 2;
    return row % 2 != 0 ? odd_values(load_ints(at)) : even_values(load_ints(at));
  } else {
    const auto* at = reinterpret_cast<const Value*>(tile) + row * dims + d;
    Floats v;
    if constexpr (kWidth > 8) {
      v = d + kWidth <= dims ? Cache::load(at) : Eight<Cache>::load(at);
    } else {
      v = Cache::load(at);
    }
    if constexpr (sizeof(Value) == 1) {
      // A scale by itself, as the first of a vector: those behind the tile's last one are never loaded.
      alignas(64) uint16_t scale[kWidth] = {};
      scale[0] = scales_of(tile, dims)[kv_v_scale_index(dims, d, row)];
      alignas(64) float value[kWidth];
      store_floats(value, load_halves(scale));
      v = mul(v, floats(value[0]));
    }
    return v;
  }
}

/// The first n of the selected positions of tile t, whose rows lie anywhere: as expand_tile leaves them, and for bf16
/// also as a K tile. The rows of the tile after are fetched on the way.
template <class Cache>
inline void gather_tile(const Work& w, int64_t t, int n, float* to) {
  const AttentionArgs& a = w.args;
  const int32_t* positions = a.selected + t * kTile;
  const int64_t row_bytes = tile_bytes_of<Cache>(a.k_dim) / kTile;
  for (int p = 0; p < n; p += kWidth) {
    const std::byte* tiles[kWidth];
    int rows[kWidth];
    for (int i = 0; i < kWidth; ++i) {
      const int position = positions[p + i < n ? p + i : n - 1];
      tiles[i] = a.pages[position / kTile] + a.k_offset;
      rows[i] = position % kTile;
      if ((t + 1) * kTile + p + i >= a.queries[0].end) continue;
      const int next = positions[kTile + p + i];
      const std::byte* row = a.pages[next / kTile] + a.k_offset + next % kTile * row_bytes;
      for (int64_t line = 0; line < row_bytes; line += 64) prefetch_l2(row + line);
    }
    for (int d = 0; d < a.k_dim; d += kWidth) {
      Ints square[kWidth];
      STOKER_UNROLL for (int i = 0; i < kWidth; ++i) square[i] = to_bits(row_values<Cache>(w, tiles[i], rows[i], d));
      transpose(square);
      STOKER_UNROLL for (int i = 0; i < kWidth; ++i) store_ints(to + (d + i) * kTile + p, square[i]);
    }
  }
  if constexpr (kIsPairs<Cache>) {
    float* pairs = reinterpret_cast<float*>(a.scratch) + w.layout.pairs;
    for (int d = 0; d < w.layout.padded_k; d += 2) {
      for (int p = 0; p < n; p += kWidth) {
        const Ints zero = ints(0);
        const Ints even = d < a.k_dim ? shift_right_16(load_ints(to + d * kTile + p)) : zero;
        const Ints odd = d < a.k_dim ? load_ints(to + (d + 1) * kTile + p) : zero;
        store_ints(pairs + d / 2 * kTile + p, or_ints(even, odd));
      }
    }
  }
}

/// kWidth rows of kWidth values become columns; only the first n_written rows of what comes out are written.
STOKER_INLINE void turn_square(const float* from, int64_t from_stride, float* to, int64_t to_stride, int n_written) {
  Ints square[kWidth];
  STOKER_UNROLL for (int i = 0; i < kWidth; ++i) square[i] = load_ints(from + i * from_stride);
  transpose(square);
  STOKER_UNROLL for (int i = 0; i < kWidth; ++i) {
    if (i < n_written) store_ints(to + i * to_stride, square[i]);
  }
}

struct LatentJob {
  const float* tile;         ///< Dimension 0 of the block, [dims][64].
  const float* weights;      ///< [64][stride], from the block's first query.
  int64_t stride;            ///< Queries, rounded up to vectors.
  Range all, common;         ///< Seen by at least one query, by all of them.
  const float *begin, *end;  ///< What each query sees.
  float* out;                ///< [dims][stride]
  const float *old_factor, *new_factor;
};

template <int kD, int kV>
STOKER_INLINE void add_position(const LatentJob& job, int p, Floats (&acc)[kD][kV]) {
  Floats weights[kV];
  STOKER_UNROLL for (int v = 0; v < kV; ++v) weights[v] = load_floats(job.weights + p * job.stride + kWidth * v);
  STOKER_UNROLL for (int d = 0; d < kD; ++d) {
    const Floats x = floats(job.tile[d * kTile + p]);
    STOKER_UNROLL for (int v = 0; v < kV; ++v) acc[d][v] = fma(weights[v], x, acc[d][v]);
  }
}

/// A position that not all queries see: what a query does not see may hold NaN.
template <int kD, int kV>
STOKER_INLINE void add_ragged(const LatentJob& job, int p, Floats (&acc)[kD][kV]) {
  const Floats at = floats(static_cast<float>(p));
  STOKER_UNROLL for (int v = 0; v < kV; ++v) {
    const Floats weight = load_floats(job.weights + p * job.stride + kWidth * v);
    const Floats begin = load_floats(job.begin + kWidth * v), end = load_floats(job.end + kWidth * v);
    STOKER_UNROLL for (int d = 0; d < kD; ++d) {
      const Floats sum = fma(weight, floats(job.tile[d * kTile + p]), acc[d][v]);
      acc[d][v] = select_less(at, begin, acc[d][v], select_less(at, end, sum, acc[d][v]));
    }
  }
}

template <int kD, int kV>
STOKER_INLINE void add_seen(const LatentJob& job, int p, Floats (&acc)[kD][kV]) {
  if (contains(job.common, p)) {
    add_position(job, p, acc);
  } else {
    add_ragged(job, p, acc);
  }
}

template <int kD, int kV>
STOKER_INLINE void merge_latent(const LatentJob& job, const Floats (&acc)[kD][kV]) {
  STOKER_UNROLL for (int v = 0; v < kV; ++v) {
    const Floats old_factor = load_floats(job.old_factor + kWidth * v);
    const Floats new_factor = load_floats(job.new_factor + kWidth * v);
    STOKER_UNROLL for (int d = 0; d < kD; ++d) {
      float* at = job.out + d * job.stride + kWidth * v;
      store_floats(at, fma(load_floats(at), old_factor, mul(acc[d][v], new_factor)));
    }
  }
}

template <bool kBf16, int kD, int kV>
__attribute__((noinline)) void latent_block(const LatentJob& job) noexcept {
  Floats sum[kD][kV];
  clear(sum);
  if constexpr (!kBf16) {
    int p = job.all.begin;
    for (; p < job.common.begin; ++p) add_ragged(job, p, sum);
    for (; p < job.common.end; ++p) add_position(job, p, sum);
    for (; p < job.all.end; ++p) add_ragged(job, p, sum);
  } else {
    for (int group = job.all.begin / 32 * 32; group < job.all.end; group += 32) {
      Floats even[kD][kV], odd[kD][kV];
      clear(even);
      clear(odd);
      const int end = group + 32 < job.all.end ? group + 32 : job.all.end;
      int p = group > job.all.begin ? group : job.all.begin;
      if (p % 2 != 0) add_seen(job, p++, odd);
      for (; p + 1 < end; p += 2) {
        add_seen(job, p, even);
        add_seen(job, p + 1, odd);
      }
      if (p < end) add_seen(job, p, even);
      STOKER_UNROLL for (int d = 0; d < kD; ++d) {
        STOKER_UNROLL for (int v = 0; v < kV; ++v) sum[d][v] = add(sum[d][v], add(even[d][v], odd[d][v]));
      }
    }
  }
  merge_latent(job, sum);
}

template <class Cache>
struct Latent {
  static constexpr bool kBf16 = kIsPairs<Cache>;
  static constexpr bool kManyRegisters = kRegisters == 32;
  static constexpr int kBlock = kBf16 ? 4 : kManyRegisters ? 12 : 6, kScoreVectors = 2;
  static constexpr int kMostVectors = kBf16 ? (kManyRegisters ? 2 : 1) : (kManyRegisters ? 4 : 2);
  /// Dimensions beside so many vectors of queries; all divide 16.
  static constexpr int dims_beside(int vectors) {
    if (kBf16) return 4;
    if (!kManyRegisters) return vectors == 1 ? 8 : 4;
    return vectors == 1 ? 16 : vectors == 4 ? 4 : 8;
  }

  const Work& w;
  float *tile, *weights, *out;  ///< Of AttentionScratch; out: [v_dim][padded].
  const std::byte* pairs;
  int padded;  ///< Queries, whole vectors.
  alignas(64) float begin[AttentionScratch::kQueries], end[AttentionScratch::kQueries];

  explicit Latent(const Work& work) : w(work), padded((work.args.n_queries + kWidth - 1) / kWidth * kWidth) {
    float* base = reinterpret_cast<float*>(w.args.scratch);
    tile = base + w.layout.tile;
    pairs = reinterpret_cast<const std::byte*>(base + w.layout.pairs);
    weights = base + w.layout.turned_weights;
    out = base + w.layout.turned_out;
    for (int i = w.args.n_queries * kTile; i < padded * kTile; i += kWidth) store_floats(w.scores + i, floats(0.0f));
  }

  void scores(Tile tile_of) const {
    if constexpr (kBf16) {
      tile_of.v = tile_of.next_k;  // what is fetched ahead
      Pairs::scores(w, tile_of);
    } else {
      const int dims = w.args.k_dim;
      const int n_calls = kTile / (kScoreVectors * kWidth) * blocks_of<kBlock>(w.args.n_queries);
      Ahead ahead = spread(tile_of.next_k, tile_bytes_of<Cache>(dims), n_calls * dims);
      for (int p = 0; p < tile_of.seen.end; p += kScoreVectors * kWidth) {
        if (p + kScoreVectors * kWidth <= tile_of.seen.begin) continue;
        for_blocks<kBlock>(w.args.n_queries, [&](int first, int count) {
          with_constant<1, kBlock>(count, [&](auto constant) {
            score_block<Panel, decltype(constant)::value, kScoreVectors>({.q = w.q + first * w.layout.padded_k,
                                                                          .k = tile + p,
                                                                          .stride = kTile,
                                                                          .dims = dims,
                                                                          .scores = w.scores + first * kTile + p,
                                                                          .ahead = ahead});
          });
          ahead.at += ahead.step * dims;
        });
      }
    }
  }

  /// Weights as [position][query], and what each query sees.
  LatentJob turn_weights(const Tile& tile_of) {
    LatentJob job{};
    job.all = tile_of.seen;
    job.common = {0, kTile};
    for (int i = 0; i < padded; ++i) {
      const Range seen = i < w.args.n_queries ? w.stats->seen[i] : Range{0, kTile};
      begin[i] = static_cast<float>(seen.begin), end[i] = static_cast<float>(seen.end);
      if (seen.begin > job.common.begin) job.common.begin = seen.begin;
      if (seen.end < job.common.end) job.common.end = seen.end;
    }
    if (job.common.begin >= job.common.end) job.common = {job.all.end, job.all.end};
    for (int p = job.all.begin / kWidth * kWidth; p < job.all.end; p += kWidth) {
      for (int i = 0; i < padded; i += kWidth) {
        turn_square(w.scores + i * kTile + p, kTile, weights + p * padded + i, padded, kWidth);
      }
    }
    job.stride = padded;
    return job;
  }

  void values(const Tile& tile_of) {
    const LatentJob whole = turn_weights(tile_of);
    for_blocks<kMostVectors>(padded / kWidth, [&](int first, int count) {
      with_constant<1, kMostVectors>(count, [&](auto constant) {
        constexpr int kV = decltype(constant)::value, kD = dims_beside(kV);
        LatentJob job = whole;
        job.weights = weights + first * kWidth;
        job.begin = begin + first * kWidth, job.end = end + first * kWidth;
        job.old_factor = w.stats->old_factor + first * kWidth;
        job.new_factor = w.stats->new_factor + first * kWidth;
        for (int d = 0; d < w.args.v_dim; d += kD) {
          job.tile = tile + d * kTile;
          job.out = out + static_cast<int64_t>(d) * padded + first * kWidth;
          latent_block<kBf16, kD, kV>(job);
        }
      });
    });
  }

  /// The sums as rows of queries, where those who divide or merge them look for them.
  void turn_out() const {
    for (int i = 0; i < padded; i += kWidth) {
      for (int d = 0; d < w.args.v_dim; d += kWidth) {
        turn_square(out + static_cast<int64_t>(d) * padded + i, padded, w.out + i * w.layout.padded_v + d,
                    w.layout.padded_v, w.args.n_queries - i);
      }
    }
  }
  void turn_in(const float* from) const {
    for (int i = 0; i < w.args.n_queries; ++i) {
      for (int d = 0; d < w.args.v_dim; ++d) out[d * padded + i] = from[i * w.layout.padded_v + d];
    }
  }
};

template <class Cache>
inline void attend_latent(const AttentionArgs& a) {
  Work w(a);
  Latent<Cache> latent(w);
  const SoftmaxArgs softmax = {a.scale, a.softcap, a.softcap > 0.0f ? 1.0f / a.softcap : 0.0f};
  const AttentionPart part(a.n_queries, a.v_dim);
  MergeStats& stats = *w.stats;
  if (a.parts != nullptr) w.out = a.parts + part.values;
  const Totals turned = {a.queries, a.v_dim, latent.padded, latent.out, latent.padded};
  start_empty(stats, turned);
  if (a.before != nullptr) {
    load_stats(stats, part, a.before, 0, a.n_queries);
    latent.turn_in(a.before + part.values);
  }
  pack_queries<Latent<Cache>::kBlock, Latent<Cache>::kBf16>(w);
  const TileRange tiles = wanted_tiles(a);
  for (int64_t t = tiles.begin; t < tiles.end; ++t) {
    if (a.each_tile && t > tiles.begin) {
      latent.turn_out();
      save_stats(stats, part, w.out - part.values, 0, a.n_queries);
      w.out += part.total;
      start_empty(stats, turned);
    }
    Tile tile{};
    if (!find_seen(w, t, &tile.seen)) continue;
    if (a.selected != nullptr) {
      tile.k = tile.next_k = latent.pairs;
    } else {
      tile.k = a.pages[t] + a.k_offset;
      const bool more = t + 1 < tiles.end && a.pages[t + 1] != nullptr;
      tile.next_k = more ? a.pages[t + 1] + a.k_offset : tile.k;
    }
    if (a.selected == nullptr) {
      expand_tile<Cache>(a.k_dim, tile, latent.tile);
    } else {
      gather_tile<Cache>(w, t, tile.seen.end, latent.tile);
    }
    latent.scores(tile);
    weights_of_tile<Latent<Cache>::kBf16>(w, t, softmax);
    latent.values(tile);
  }
  latent.turn_out();
  if (a.parts == nullptr) return finish(stats, {a.queries, a.n_queries, a.v_dim, w.out, w.layout.padded_v});
  save_stats(stats, part, w.out - part.values, 0, a.n_queries);
}
