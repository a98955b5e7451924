// Many queries (prefill): the tile is expanded to f32 part by part, each small enough to stay in L1.

/// Many queries, f16 or f32: the tile goes through panels of f32.
template <class Cache>
struct Expanded {
  using Value = typename Cache::Value;
  static constexpr bool kBf16 = false, kScaled = sizeof(Value) == 1;
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
        Floats v = Cache::load(k + d * kTile + kWidth * b);
        if constexpr (kScaled) {
          v = mul(v, load_halves(scales_of(tile.k, w.args.k_dim) + kv_k_scale_index(d, p + kWidth * b)));
        }
        store_floats(w.k_panel + d * kPanel + kWidth * b, v);
      }
    }
  }

  static void scores(const Work& w, const Tile& tile) {
    const int dims = w.args.k_dim;
    const int n_calls = kTile / kPanel * blocks_of<kBlock>(w.args.n_queries);
    Ahead ahead = spread(tile.v, tile_bytes_of<Cache>(w.args.v_dim), n_calls * dims);
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
  static void expand_values(const Work& w, const Tile& tile, const float* scales, int d, int n_vectors) {
    const int dims = w.args.v_dim;
    for (int p = tile.seen.begin; p < tile.seen.end; ++p) {
      const Value* v = reinterpret_cast<const Value*>(tile.v) + static_cast<int64_t>(p) * dims + d;
      float* to = w.v_panel + p * n_vectors * kWidth;
      for (int b = 0; b < n_vectors; ++b) {
        Floats value;
        if constexpr (kWidth > 8) {
          const bool full = d + kWidth * (b + 1) <= dims;
          value = full ? Cache::load(v + kWidth * b) : Eight<Cache>::load(v + kWidth * b);
        } else {
          value = Cache::load(v + kWidth * b);
        }
        if constexpr (kScaled) value = mul(value, floats(scales[kv_v_scale_index(dims, d + kWidth * b, p)]));
        store_floats(to + kWidth * b, value);
      }
    }
  }

  static void values(const Work& w, const Tile& tile) {
    const int n_vectors = (w.args.v_dim + kWidth - 1) / kWidth;
    const int n_calls = blocks_of<kValueVectors>(n_vectors) * blocks_of<kValueBlock>(w.args.n_queries);
    Ahead ahead = spread(tile.next_k, tile_bytes_of<Cache>(w.args.k_dim), n_calls * kTile);
    const float* scales = nullptr;
    if constexpr (kScaled) scales = expand_scales(w, tile);
    for_blocks<kValueVectors>(n_vectors, [&](int first_vector, int n) {
      expand_values(w, tile, scales, first_vector * kWidth, n);
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
