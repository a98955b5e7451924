// The scores of an indexer: dot products of all heads of some tokens with the keys of a tile, then per position the
// weighted sum of those above zero. Positions are lanes, and each sum is one chain.

constexpr int kIndexVectors = 2;
constexpr int kSums = 4;  // Vectors of positions whose sums go on side by side.

/// Heads [first, first + count) of some tokens, at most AttentionScratch::kQueries together.
struct IndexBlock {
  int token, n_tokens, first, count;
};

/// scores += the block's heads; the first heads begin the sum.
inline void add_heads(const IndexArgs& a, const IndexBlock& block, const float* dots, int64_t tile) {
  for (int i = 0; i < block.n_tokens; ++i) {
    const float* weights = a.weights + (block.token + i) * a.weight_stride + block.first;
    float* scores = a.scores + (block.token + i) * a.score_stride + (tile - a.tile_begin) * kTile;
    for (int p = 0; p < kTile; p += kSums * kWidth) {
      Floats sums[kSums];
      STOKER_UNROLL for (int v = 0; v < kSums; ++v) {
        sums[v] = block.first == 0 ? floats(0.0f) : load_floats(scores + p + kWidth * v);
      }
      const float* of_head = dots + i * block.count * kTile + p;
      for (int head = 0; head < block.count; ++head, of_head += kTile) {
        const Floats weight = floats(weights[head]);
        STOKER_UNROLL for (int v = 0; v < kSums; ++v) {
          sums[v] = fma(weight, max(load_floats(of_head + kWidth * v), floats(0.0f)), sums[v]);
        }
      }
      STOKER_UNROLL for (int v = 0; v < kSums; ++v) store_floats(scores + p + kWidth * v, sums[v]);
    }
  }
}

template <class Cache>
inline void index_block(const IndexArgs& a, const IndexBlock& block) {
  constexpr int kBlock = Latent<Cache>::kManyRegisters ? 12 : 6;
  AttentionQuery queries[AttentionScratch::kQueries];
  const int n = block.n_tokens * block.count;
  for (int i = 0; i < n; ++i) {
    queries[i] = {};
    queries[i].q = a.q + (block.token + i / block.count) * a.q_stride + (block.first + i % block.count) * a.dim;
  }
  AttentionArgs args{};
  args.k_dim = a.dim;
  args.queries = queries;
  args.n_queries = n;
  args.scratch = a.scratch;
  const Work w(args);
  float* expanded = reinterpret_cast<float*>(a.scratch) + w.layout.tile;
  pack_queries<kBlock, false>(w);
  for (int64_t t = a.tile_begin; t < a.tile_end; ++t) {
    Tile tile{};
    tile.k = a.pages[t] + a.k_offset;
    const std::byte* next = t + 1 < a.tile_end ? a.pages[t + 1] + a.k_offset : tile.k;
    const int n_calls = kTile / (kIndexVectors * kWidth) * blocks_of<kBlock>(n);
    Ahead ahead = spread(next, tile_bytes_of<Cache>(a.dim), n_calls * a.dim);
    for (int p = 0; p < kTile; p += kIndexVectors * kWidth) {
      tile.seen = {p, p + kIndexVectors * kWidth};
      expand_tile<Cache>(a.dim, tile, expanded);
      for_blocks<kBlock>(n, [&](int first, int count) {
        with_constant<1, kBlock>(count, [&](auto constant) {
          score_block<Panel, decltype(constant)::value, kIndexVectors>({.q = w.q + first * w.layout.padded_k,
                                                                        .k = expanded + p,
                                                                        .stride = kTile,
                                                                        .dims = a.dim,
                                                                        .scores = w.scores + first * kTile + p,
                                                                        .ahead = ahead});
        });
        ahead.at += ahead.step * a.dim;
      });
    }
    add_heads(a, block, w.scores, t);
  }
}

template <class Cache>
inline void index_tiles(const IndexArgs& a) {
  constexpr int kMost = AttentionScratch::kQueries;
  const int n_tokens = a.n_heads < kMost ? kMost / a.n_heads : 1;
  for (int token = 0; token < a.n_tokens; token += n_tokens) {
    const int n = a.n_tokens - token < n_tokens ? a.n_tokens - token : n_tokens;
    for (int first = 0; first < a.n_heads; first += kMost) {
      index_block<Cache>(a, {token, n, first, a.n_heads - first < kMost ? a.n_heads - first : kMost});
    }
  }
}
