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
