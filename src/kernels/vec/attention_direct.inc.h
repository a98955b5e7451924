// A tile straight from the cache: a few queries (decode) at the speed of memory, and bf16 always.

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
