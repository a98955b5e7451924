// Attention over tiles of 64 positions: tile by tile, scores, weights, values. The bits are those of one query at a
// time.

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
inline void weights_of_tile(const Work& w, int64_t t, const SoftmaxArgs& softmax) {
  MergeStats& stats = *w.stats;
  for (int i = 0; i < w.args.n_queries; ++i) {
    if (stats.seen[i].begin < stats.seen[i].end) {
      const AttentionQuery& query = w.args.queries[i];
      const Distance distance = {query.slope, static_cast<float>(query.position - t * kTile)};
      softmax_tile<kBf16>(softmax, distance, stats.seen[i], w.scores + i * kTile, stats.tile_max + i,
                          stats.tile_sum + i);
    } else {
      stats.tile_max[i] = kLowest;
      stats.tile_sum[i] = 0.0f;
    }
  }
  merge_stats(stats, w.args.n_queries);
}

/// Results of n queries that are not divided yet, as rows of `values`.
struct Totals {
  const AttentionQuery* queries;
  int n, dims;
  float* values;
  int64_t stride;
};

/// Nothing seen yet.
inline void start_empty(MergeStats& stats, const Totals& totals) {
  for (int i = 0; i < AttentionScratch::kQueries; ++i) {
    stats.max[i] = stats.tile_max[i] = kLowest;
    stats.sum[i] = stats.tile_sum[i] = 0.0f;
  }
  for (int64_t d = 0; d < totals.n * totals.stride; d += kWidth) store_floats(totals.values + d, floats(0.0f));
}

/// Goes on from a part; its statistics are those from the query at `first` on.
inline void load_stats(MergeStats& stats, const AttentionPart& part, const float* from, int first, int n) {
  for (int i = 0; i < n; ++i) {
    stats.max[i] = from[part.max + first + i];
    stats.sum[i] = from[part.sum + first + i];
  }
}
inline void save_stats(const MergeStats& stats, const AttentionPart& part, float* to, int first, int n) {
  for (int i = 0; i < n; ++i) {
    to[part.max + first + i] = stats.max[i];
    to[part.sum + first + i] = stats.sum[i];
  }
}

/// Merges the sinks, divides by the sums. A query that saw nothing has the sum 0 and answers zeros.
inline void finish(MergeStats& stats, const Totals& totals) {
  const int n = totals.n, dims = totals.dims;
  for (int i = 0; i < n; ++i) {
    const float* sink = totals.queries[i].sink;
    stats.tile_max[i] = sink != nullptr ? *sink : kLowest;
    stats.tile_sum[i] = sink != nullptr ? 1.0f : 0.0f;
  }
  merge_stats(stats, n);
  for (int i = 0; i < n; ++i) {
    const float* out = totals.values + i * totals.stride;
    const bool sink = totals.queries[i].sink != nullptr;
    const Floats factor = floats(stats.old_factor[i]);
    const Floats inverse = floats(stats.sum[i] == 0.0f ? 0.0f : 1.0f / stats.sum[i]);
    for (int d = 0; d < dims; d += kWidth) {
      Floats v = load_floats(out + d);
      if (sink) v = fma(v, factor, floats(0.0f));
      // The + 0 removes negative zeros: their sign could depend on masked rows.
      const Floats result = fma(v, inverse, floats(0.0f));
      if (d + kWidth <= dims) {
        store_floats(totals.queries[i].out + d, result);
      } else {
        store_part(totals.queries[i].out + d, result, dims - d);
      }
    }
  }
}

/// Tiles of which some query sees something and that the call wants.
struct TileRange {
  int64_t begin, end;
};
inline TileRange wanted_tiles(const AttentionArgs& a) {
  int64_t begin = 0, end = 0;  // Of what any query sees.
  for (int i = 0; i < a.n_queries; ++i) {
    const AttentionQuery& query = a.queries[i];
    if (query.begin >= query.end) continue;
    begin = begin < end && begin < query.begin ? begin : query.begin;
    end = end > query.end ? end : query.end;
  }
  const TileRange seen = {begin / kTile, (end + kTile - 1) / kTile};
  return {seen.begin > a.tile_begin ? seen.begin : a.tile_begin, seen.end < a.tile_end ? seen.end : a.tile_end};
}

template <class Kernels>
inline void attend(const AttentionArgs& a) {
  Work w(a);
  const SoftmaxArgs softmax = {a.scale, a.softcap, a.softcap > 0.0f ? 1.0f / a.softcap : 0.0f};
  const AttentionPart part(a.n_queries, a.v_dim);
  MergeStats& stats = *w.stats;
  if (a.parts != nullptr) w.out = a.parts + part.values;
  Totals totals = {a.queries, a.n_queries, a.v_dim, w.out, w.layout.padded_v};
  start_empty(stats, totals);
  if (a.before != nullptr) {
    load_stats(stats, part, a.before, 0, a.n_queries);
    for (int64_t d = part.values; d < part.total; d += kWidth) store_floats(a.parts + d, load_floats(a.before + d));
  }
  pack_queries<Kernels::kBlock, Kernels::kBf16>(w);
  const TileRange tiles = wanted_tiles(a);
  for (int64_t t = tiles.begin; t < tiles.end; ++t) {
    if (a.each_tile && t > tiles.begin) {
      save_stats(stats, part, w.out - part.values, 0, a.n_queries);
      totals.values = w.out += part.total;
      start_empty(stats, totals);
    }
    Tile tile{};
    if (!find_seen(w, t, &tile.seen)) continue;
    tile.k = a.pages[t] + a.k_offset;
    tile.v = a.pages[t] + a.v_offset;
    const bool more = t + 1 < tiles.end && a.pages[t + 1] != nullptr;
    tile.next_k = more ? a.pages[t + 1] + a.k_offset : tile.k;
    Kernels::scores(w, tile);
    weights_of_tile<Kernels::kBf16>(w, t, softmax);
    Kernels::values(w, tile);
  }
  if (a.parts == nullptr) return finish(stats, totals);
  save_stats(stats, part, w.out - part.values, 0, a.n_queries);
}

inline void merge_parts(const AttentionMergeArgs& a) {
  const AttentionPart part(a.n_queries, a.v_dim);
  const int first = a.query_begin, n = a.query_end - a.query_begin;
  const int64_t values = part.values + first * part.padded_v;
  MergeStats stats{};
  load_stats(stats, part, a.total, first, n);
  for (int64_t p = 0; p < a.n_parts; ++p) {
    const float* from = a.parts + p * part.total;
    for (int i = 0; i < n; ++i) {
      stats.tile_max[i] = from[part.max + first + i];
      stats.tile_sum[i] = from[part.sum + first + i];
    }
    merge_stats(stats, n);
    for (int i = 0; i < n; ++i) {
      if (stats.tile_sum[i] == 0.0f) continue;  // Saw nothing, as in merge_values.
      const Floats old_factor = floats(stats.old_factor[i]), new_factor = floats(stats.new_factor[i]);
      for (int64_t d = values + i * part.padded_v; d < values + (i + 1) * part.padded_v; d += kWidth) {
        store_floats(a.total + d, fma(load_floats(a.total + d), old_factor, mul(load_floats(from + d), new_factor)));
      }
    }
  }
  if (a.last) return finish(stats, {a.queries + first, n, a.v_dim, a.total + values, part.padded_v});
  save_stats(stats, part, a.total, first, n);
}

template <class Cache, class Few>
inline void attend_chain(const AttentionArgs& a) {
  if (a.n_queries < Expanded<Cache>::kFewest) {
    attend<Few>(a);
  } else {
    attend<Expanded<Cache>>(a);
  }
}
