// Attention over tiles of 64 positions. A few queries (decode) read the tile as it is, at the speed of memory; many
// (prefill) expand it to f32 part by part, each part small enough for L1. The bits are those of one query at a time.

template <int kN>
struct Constant {
  static constexpr int value = kN;
};
/// f(Constant<n>) for kMin <= n <= kMax.
template <int kMin, int kMax, class F>
STOKER_INLINE void with_constant(int n, F f) {
  if constexpr (kMin == kMax) {
    f(Constant<kMin>{});
  } else if (n == kMin) {
    f(Constant<kMin>{});
  } else {
    with_constant<kMin + 1, kMax>(n, f);
  }
}

/// The scratch of a worker and what is known about the call.
struct Work {
  const AttentionArgs& args;
  AttentionScratch layout;
  float *q, *k_panel, *v_panel, *scores, *out;
  MergeStats* stats;

  explicit Work(const AttentionArgs& a) : args(a), layout(a.k_dim, a.v_dim) {
    float* base = reinterpret_cast<float*>(a.scratch);
    q = base + layout.q;
    k_panel = base + layout.k_panel;
    v_panel = base + layout.v_panel;
    scores = base + layout.scores;
    out = base + layout.out;
    static_assert(sizeof(MergeStats) <= 8 * AttentionScratch::kQueries * sizeof(float));
    stats = reinterpret_cast<MergeStats*>(base + layout.stats);
  }
};

struct Tile {
  const std::byte* k;
  const std::byte* v;
  const std::byte* next_k;  ///< To fetch ahead; this tile's when there is none.
  Range seen;               ///< By any query.
};

template <int kMost>
STOKER_INLINE int blocks_of(int n) {
  return (n + kMost - 1) / kMost;
}
/// Calls f(first, count) for n things in blocks of at most kMost, as equal as can be.
template <int kMost, class F>
STOKER_INLINE void for_blocks(int n, F f) {
  const int n_blocks = blocks_of<kMost>(n);
  for (int block = 0; block < n_blocks; ++block) {
    const int first = block * n / n_blocks;
    f(first, (block + 1) * n / n_blocks - first);
  }
}

/// q as [dimension][query] of each block, so that a block reads one stream.
template <int kMost, bool kBf16>
inline void pack_queries(const Work& w) {
  const int k_dim = w.args.k_dim;
  for_blocks<kMost>(w.args.n_queries, [&](int first, int count) {
    for (int i = 0; i < count; ++i) {
      float* to = w.q + first * w.layout.padded_k + i;
      for (int d = 0; d < w.layout.padded_k; d += kWidth) {
        alignas(64) float values[kWidth];
        const Floats v = load_part(w.args.queries[first + i].q + d, k_dim - d);
        store_floats(values, kBf16 ? round_bf16(v) : v);
        for (int lane = 0; lane < kWidth; ++lane) to[(d + lane) * count] = values[lane];
      }
    }
  });
}

/// What queries [first, first + count) see of the tile.
inline void fill_ranges(ValueJob& job, int count) {
  job.all = {kTile, 0};
  job.common = {0, kTile};
  for (int i = 0; i < count; ++i) {
    const Range seen = job.seen[i];
    if (seen.begin >= seen.end) continue;
    if (seen.begin < job.all.begin) job.all.begin = seen.begin;
    if (seen.end > job.all.end) job.all.end = seen.end;
    if (seen.begin > job.common.begin) job.common.begin = seen.begin;
    if (seen.end < job.common.end) job.common.end = seen.end;
  }
  if (job.common.begin >= job.common.end) job.common = {job.all.end, job.all.end};
}

inline ValueJob value_job(const Work& w, int first, int count) {
  ValueJob job{};
  job.weights = w.scores + first * kTile;
  job.seen = w.stats->seen + first;
  job.out = w.out + first * w.layout.padded_v;
  job.out_stride = w.layout.padded_v;
  job.old_factor = w.stats->old_factor + first;
  job.new_factor = w.stats->new_factor + first;
  fill_ranges(job, count);
  return job;
}

/// Few queries, f16 or f32: straight from the cache.
template <class Cache>
struct Direct {
  using Value = typename Cache::Value;
  static constexpr bool kBf16 = false;
  static constexpr int kBlock = kRegisters == 32 ? 8 : 4;

  static void scores(const Work& w, const Tile& tile) {
    const int dims = w.args.k_dim;
    const int64_t v_bytes = static_cast<int64_t>(sizeof(Value)) * kTile * w.args.v_dim;
    for_blocks<kBlock>(w.args.n_queries, [&](int first, int count) {
      with_constant<1, kBlock>(count, [&](auto constant) {
        constexpr int kQ = decltype(constant)::value, kVectors = vectors_for(kQ, kTile / kWidth);
        const int64_t step = v_bytes / dims / (kTile / (kVectors * kWidth));
        for (int p = 0; p < tile.seen.end; p += kVectors * kWidth) {
          if (p + kVectors * kWidth <= tile.seen.begin) continue;
          score_block<Cache, kQ, kVectors>({.q = w.q + first * w.layout.padded_k,
                                            .k = reinterpret_cast<const Value*>(tile.k) + p,
                                            .stride = kTile,
                                            .dims = dims,
                                            .scores = w.scores + first * kTile + p,
                                            .ahead = {tile.v + p / kWidth / kVectors * step * dims, step}});
        }
      });
    });
  }

  template <class Load, int kQ, int kVectors>
  static void value_vectors(const Work& w, const Tile& tile, ValueJob job, int d) {
    const int64_t k_bytes = static_cast<int64_t>(sizeof(Value)) * kTile * w.args.k_dim;
    const int64_t step = k_bytes / kTile * kVectors * kWidth / w.args.v_dim;
    job.v = reinterpret_cast<const Value*>(tile.v) + d;
    job.stride = w.args.v_dim;
    job.out += d;
    job.ahead = {tile.next_k + k_bytes * d / w.args.v_dim, step};
    value_block<Load, kQ, kVectors>(job);
  }

  static void values(const Work& w, const Tile& tile) {
    for_blocks<kBlock>(w.args.n_queries, [&](int first, int count) {
      const ValueJob job = value_job(w, first, count);
      if (job.all.begin >= job.all.end) return;
      with_constant<1, kBlock>(count, [&](auto constant) {
        constexpr int kQ = decltype(constant)::value, kVectors = vectors_for(kQ, 8);
        const int dims = w.args.v_dim;
        int d = 0;
        for (; d + kVectors * kWidth <= dims; d += kVectors * kWidth)
          value_vectors<Cache, kQ, kVectors>(w, tile, job, d);
        if constexpr (kVectors > 4) {
          for (; d + 4 * kWidth <= dims; d += 4 * kWidth) value_vectors<Cache, kQ, 4>(w, tile, job, d);
        }
        if constexpr (kVectors > 2) {
          for (; d + 2 * kWidth <= dims; d += 2 * kWidth) value_vectors<Cache, kQ, 2>(w, tile, job, d);
        }
        for (; d + kWidth <= dims; d += kWidth) value_vectors<Cache, kQ, 1>(w, tile, job, d);
        if constexpr (kWidth > 8) {
          if (d < dims) value_vectors<Eight<Cache>, kQ, 1>(w, tile, job, d);
        }
      });
    });
  }
};

/// Many queries, f16 or f32: the tile goes through panels of f32.
template <class Cache>
struct Expanded {
  using Value = typename Cache::Value;
  static constexpr bool kBf16 = false;
  static constexpr int kBlock = kRegisters == 32 ? 12 : 6, kValueBlock = 6;
  static constexpr int kScoreVectors = 2, kValueVectors = vectors_for(kValueBlock, 4);
  static constexpr int kFewest = 9;  // Queries in a call.
  // The smallest blocks from there on: 13 = 7 + 6 of at most 12, 9 = 5 + 4 of at most 6.
  static constexpr int kSmallest = kBlock == 12 ? 6 : 4, kSmallestValue = 4;
  static constexpr int kPanel = kScoreVectors * kWidth;
  static_assert(kPanel <= AttentionScratch::kPanelPositions);
  static_assert(kValueVectors * kWidth <= AttentionScratch::kPanelDims);

  static void expand_keys(const Work& w, const Tile& tile, int p) {
    const Value* k = reinterpret_cast<const Value*>(tile.k) + p;
    for (int d = 0; d < w.args.k_dim; ++d) {
      STOKER_UNROLL for (int b = 0; b < kScoreVectors; ++b) {
        store_floats(w.k_panel + d * kPanel + kWidth * b, Cache::load(k + d * kTile + kWidth * b));
      }
    }
  }

  static void scores(const Work& w, const Tile& tile) {
    const int dims = w.args.k_dim;
    const int n_calls = kTile / kPanel * blocks_of<kBlock>(w.args.n_queries);
    Ahead ahead = spread(tile.v, static_cast<int64_t>(sizeof(Value)) * kTile * w.args.v_dim, n_calls * dims);
    for (int p = 0; p < tile.seen.end; p += kPanel) {
      if (p + kPanel <= tile.seen.begin) continue;
      expand_keys(w, tile, p);
      for_blocks<kBlock>(w.args.n_queries, [&](int first, int count) {
        with_constant<kSmallest, kBlock>(count, [&](auto constant) {
          score_block<Panel, decltype(constant)::value, kScoreVectors>({.q = w.q + first * w.layout.padded_k,
                                                                        .k = w.k_panel,
                                                                        .stride = kPanel,
                                                                        .dims = dims,
                                                                        .scores = w.scores + first * kTile + p,
                                                                        .ahead = ahead});
        });
        ahead.at += ahead.step * dims;
      });
    }
  }

  /// Dimensions [d, d + n_vectors * kWidth) of the seen positions; those beyond the head become zero.
  static void expand_values(const Work& w, const Tile& tile, int d, int n_vectors) {
    const int dims = w.args.v_dim;
    for (int p = tile.seen.begin; p < tile.seen.end; ++p) {
      const Value* v = reinterpret_cast<const Value*>(tile.v) + static_cast<int64_t>(p) * dims + d;
      float* to = w.v_panel + p * n_vectors * kWidth;
      for (int b = 0; b < n_vectors; ++b) {
        const bool full = kWidth == 8 || d + kWidth * (b + 1) <= dims;
        store_floats(to + kWidth * b, full ? Cache::load(v + kWidth * b) : Eight<Cache>::load(v + kWidth * b));
      }
    }
  }

  static void values(const Work& w, const Tile& tile) {
    const int n_vectors = (w.args.v_dim + kWidth - 1) / kWidth;
    const int n_calls = blocks_of<kValueVectors>(n_vectors) * blocks_of<kValueBlock>(w.args.n_queries);
    Ahead ahead = spread(tile.next_k, static_cast<int64_t>(sizeof(Value)) * kTile * w.args.k_dim, n_calls * kTile);
    for_blocks<kValueVectors>(n_vectors, [&](int first_vector, int n) {
      expand_values(w, tile, first_vector * kWidth, n);
      for_blocks<kValueBlock>(w.args.n_queries, [&](int first, int count) {
        ValueJob job = value_job(w, first, count);
        if (job.all.begin >= job.all.end) return;
        job.v = w.v_panel;
        job.stride = n * kWidth;
        job.out += first_vector * kWidth;
        job.ahead = ahead;
        ahead.at += ahead.step * kTile;
        with_constant<1, kValueVectors>(n, [&](auto vectors) {
          with_constant<kSmallestValue, kValueBlock>(count, [&](auto queries) {
            value_block<Panel, decltype(queries)::value, decltype(vectors)::value>(job);
          });
        });
      });
    });
  }
};

/// bf16: always straight from the cache, where a value takes one instruction to become f32.
struct Pairs {
  static constexpr bool kBf16 = true;
  static constexpr int kBlock = 4;

  static void scores(const Work& w, const Tile& tile) {
    const int dims = static_cast<int>(w.layout.padded_k);
    const int64_t v_bytes = 2 * kTile * w.layout.padded_v;
    for_blocks<kBlock>(w.args.n_queries, [&](int first, int count) {
      with_constant<1, kBlock>(count, [&](auto constant) {
        constexpr int kQ = decltype(constant)::value, kVectors = pair_vectors_for(kQ, kTile / kWidth);
        const int64_t step = v_bytes / (dims / 2) / (kTile / (kVectors * kWidth));
        for (int p = 0; p < tile.seen.end; p += kVectors * kWidth) {
          if (p + kVectors * kWidth <= tile.seen.begin) continue;
          score_pairs<kQ, kVectors>({.q = w.q + first * w.layout.padded_k,
                                     .k = reinterpret_cast<const uint16_t*>(tile.k) + 2 * p,
                                     .stride = 2 * kTile,
                                     .dims = dims,
                                     .scores = w.scores + first * kTile + p,
                                     .ahead = {tile.v + p / kWidth / kVectors * step * (dims / 2), step}});
        }
      });
    });
  }

  static void values(const Work& w, const Tile& tile) {
    const int dims = static_cast<int>(w.layout.padded_v);
    const int64_t k_bytes = 2 * kTile * w.layout.padded_k;
    for_blocks<kBlock>(w.args.n_queries, [&](int first, int count) {
      const ValueJob job = value_job(w, first, count);
      if (job.all.begin >= job.all.end) return;
      with_constant<1, kBlock>(count, [&](auto constant) {
        constexpr int kQ = decltype(constant)::value, kVectors = pair_vectors_for(kQ, 32 / kWidth);
        for (int d = 0; d < dims; d += kVectors * kWidth) {
          ValueJob part = job;
          part.v = reinterpret_cast<const uint16_t*>(tile.v) + 2 * d;
          part.stride = 2 * dims;
          part.out += d;
          part.ahead = {tile.next_k + k_bytes * d / dims, k_bytes * kVectors * kWidth / dims / (kTile / 2)};
          value_pairs<kQ, kVectors>(part);
        }
      });
    });
  }
};

/// What every query sees of tile t; false when none sees anything.
inline bool find_seen(const Work& w, int64_t t, Range* all) {
  *all = {kTile, 0};
  for (int i = 0; i < w.args.n_queries; ++i) {
    const int64_t begin = w.args.queries[i].begin - t * kTile, end = w.args.queries[i].end - t * kTile;
    Range seen = {static_cast<int>(begin < 0       ? 0
                                   : begin > kTile ? kTile
                                                   : begin),
                  static_cast<int>(end < 0       ? 0
                                   : end > kTile ? kTile
                                                 : end)};
    if (seen.begin >= seen.end) seen = {0, 0};
    w.stats->seen[i] = seen;
    if (seen.begin == seen.end) continue;
    if (seen.begin < all->begin) all->begin = seen.begin;
    if (seen.end > all->end) all->end = seen.end;
  }
  return all->begin < all->end;
}

template <bool kBf16>
inline void weights_of_tile(const Work& w, const SoftmaxArgs& softmax) {
  MergeStats& stats = *w.stats;
  for (int i = 0; i < w.args.n_queries; ++i) {
    if (stats.seen[i].begin < stats.seen[i].end) {
      softmax_tile<kBf16>(softmax, stats.seen[i], w.scores + i * kTile, stats.tile_max + i, stats.tile_sum + i);
    } else {
      stats.tile_max[i] = kLowest;
      stats.tile_sum[i] = 0.0f;
    }
  }
  merge_stats(stats, w.args.n_queries);
}

/// Merges the sinks, divides by the sums. A query that saw nothing has the sum 0 and answers zeros.
inline void finish(const Work& w) {
  MergeStats& stats = *w.stats;
  const int n = w.args.n_queries, dims = w.args.v_dim;
  for (int i = 0; i < n; ++i) {
    const float* sink = w.args.queries[i].sink;
    stats.tile_max[i] = sink != nullptr ? *sink : kLowest;
    stats.tile_sum[i] = sink != nullptr ? 1.0f : 0.0f;
  }
  merge_stats(stats, n);
  for (int i = 0; i < n; ++i) {
    const float* out = w.out + i * w.layout.padded_v;
    const bool sink = w.args.queries[i].sink != nullptr;
    const Floats factor = floats(stats.old_factor[i]);
    const Floats inverse = floats(stats.sum[i] == 0.0f ? 0.0f : 1.0f / stats.sum[i]);
    for (int d = 0; d < dims; d += kWidth) {
      Floats v = load_floats(out + d);
      if (sink) v = fma(v, factor, floats(0.0f));
      // The + 0 removes negative zeros: their sign could depend on masked rows.
      const Floats result = fma(v, inverse, floats(0.0f));
      if (d + kWidth <= dims) {
        store_floats(w.args.queries[i].out + d, result);
      } else {
        store_part(w.args.queries[i].out + d, result, dims - d);
      }
    }
  }
}

template <class Kernels>
inline void attend(const AttentionArgs& a) {
  Work w(a);
  const SoftmaxArgs softmax = {a.scale, a.softcap, a.softcap > 0.0f ? 1.0f / a.softcap : 0.0f};
  int64_t begin = 0, end = 0;  // Of what any query sees.
  for (int i = 0; i < a.n_queries; ++i) {
    const AttentionQuery& query = a.queries[i];
    if (query.begin >= query.end) continue;
    begin = begin < end && begin < query.begin ? begin : query.begin;
    end = end > query.end ? end : query.end;
  }
  for (int i = 0; i < AttentionScratch::kQueries; ++i) {
    w.stats->max[i] = kLowest;
    w.stats->sum[i] = w.stats->tile_max[i] = w.stats->tile_sum[i] = 0.0f;
  }
  for (int64_t d = 0; d < a.n_queries * w.layout.padded_v; d += kWidth) store_floats(w.out + d, floats(0.0f));
  pack_queries<Kernels::kBlock, Kernels::kBf16>(w);
  for (int64_t t = begin / kTile; t * kTile < end; ++t) {
    Tile tile{};
    if (!find_seen(w, t, &tile.seen)) continue;
    tile.k = a.pages[t] + a.k_offset;
    tile.v = a.pages[t] + a.v_offset;
    const bool more = (t + 1) * kTile < end && a.pages[t + 1] != nullptr;
    tile.next_k = more ? a.pages[t + 1] + a.k_offset : tile.k;
    Kernels::scores(w, tile);
    weights_of_tile<Kernels::kBf16>(w, softmax);
    Kernels::values(w, tile);
  }
  finish(w);
}

template <class Cache>
inline void attend_chain(const AttentionArgs& a) {
  if (a.n_queries < Expanded<Cache>::kFewest) {
    attend<Direct<Cache>>(a);
  } else {
    attend<Expanded<Cache>>(a);
  }
}
