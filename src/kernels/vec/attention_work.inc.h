// What the ways through a tile (attention_direct, attention_expanded) share.

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

/// q as [dimension][query] of each block, so that a block reads one stream. Whole vectors of queries are written, rows
/// ascending, so that what is too much is written over by what follows it (behind the last one by the first panel).
template <int kMost, bool kBf16>
inline void pack_queries(const Work& w) {
  constexpr int kSquares = (kMost + kWidth - 1) / kWidth;
  for_blocks<kMost>(w.args.n_queries, [&](int first, int count) {
    float* to = w.q + first * w.layout.padded_k;
    for (int d = 0; d < w.layout.padded_k; d += kWidth) {
      Ints squares[kSquares][kWidth];
      STOKER_UNROLL for (int i = 0; i < kSquares * kWidth; ++i) {
        Floats v = floats(0.0f);
        if (i < count) v = load_part(w.args.queries[first + i].q + d, w.args.k_dim - d);
        squares[i / kWidth][i % kWidth] = to_bits(kBf16 ? round_bf16(v) : v);
      }
      STOKER_UNROLL for (int s = 0; s < kSquares; ++s) transpose(squares[s]);
      for (int row = 0; row < kWidth; ++row, to += count) {
        STOKER_UNROLL for (int s = 0; s < kSquares; ++s) {
          if (s * kWidth < count) store_ints(to + s * kWidth, squares[s][row]);
        }
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
