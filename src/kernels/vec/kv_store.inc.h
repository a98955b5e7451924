// Writing K and V tiles. A value, or for bf16 a pair of neighbours, is a word; K is stored transposed, in squares of
// kWidth positions as long as there are that many. Only the places of the given positions are written: other threads
// may be writing their neighbours.

/// The words of kWidth values (bf16: 2 kWidth) at x, `n` of which exist; `top` collects the largest magnitude.
template <KvType kType>
STOKER_INLINE Ints words_of(const float* x, int n, Ints& top) {
  const Floats v = load_part(x, n);
  if constexpr (kType == KvType::kF16) {
    const Ints halves = to_halves(v);
    top = max_unsigned(top, and_ints(halves, ints(0x7fff)));
    return halves;
  } else if constexpr (kType == KvType::kF32) {
    top = max_unsigned(top, to_bits(magnitude(v)));
    return to_bits(v);
  } else {
    const Ints low = bf16_bits(v), high = bf16_bits(load_part(x + kWidth, n - kWidth));
    top = max_unsigned(top, and_ints(max_unsigned(and_ints(low, ints(0x7fffffff)), and_ints(high, ints(0x7fffffff))),
                                     ints(0xffff0000u)));
    return pair_words(low, high);
  }
}

template <KvType kType>
STOKER_INLINE bool is_finite(Ints top) {
  return max_unsigned_lane(top) < (kType == KvType::kF16 ? 0x7c00u : 0x7f800000u);
}

/// How a word lies in K tiles.
template <KvType kType>
struct KWord {
  using Type = uint32_t;
};
template <>
struct KWord<KvType::kF16> {
  using Type = uint16_t;
};

STOKER_INLINE void store_words(uint32_t* p, Ints words) { store_ints(p, words); }
STOKER_INLINE void store_words(uint16_t* p, Ints words) { store_low_halves(p, words); }

template <KvType kType>
inline bool store_k_words(const KvStoreArgs& a) {
  using Word = typename KWord<kType>::Type;
  constexpr int kValues = kType == KvType::kBf16 ? 2 : 1;  // Per word.
  const int n_words = kv_padded_dim(kType, a.dim) / kValues;
  Ints top = ints(0);
  for (int first = 0; first < n_words; first += kWidth) {
    const int d = first * kValues;
    const int count = n_words - first < kWidth ? n_words - first : kWidth;
    Word* to = reinterpret_cast<Word*>(a.tile) + first * kTile + a.position;
    int i = 0;
    for (; i + kWidth <= a.n; i += kWidth) {
      Ints square[kWidth];
      STOKER_UNROLL for (int j = 0; j < kWidth; ++j) {
        square[j] = words_of<kType>(a.x + (i + j) * a.stride + d, a.dim - d, top);
      }
      transpose(square);
      for (int j = 0; j < count; ++j) store_words(to + j * kTile + i, square[j]);
    }
    for (; i < a.n; ++i) {
      alignas(64) uint32_t words[kWidth];
      store_ints(words, words_of<kType>(a.x + i * a.stride + d, a.dim - d, top));
      for (int j = 0; j < count; ++j) to[j * kTile + i] = static_cast<Word>(words[j]);
    }
  }
  return is_finite<kType>(top);
}

/// f16 and f32: rows.
template <KvType kType>
inline bool store_v_rows(const KvStoreArgs& a) {
  using Word = typename KWord<kType>::Type;
  Ints top = ints(0);
  for (int i = 0; i < a.n; ++i) {
    const float* x = a.x + i * a.stride;
    Word* to = reinterpret_cast<Word*>(a.tile) + static_cast<int64_t>(a.position + i) * a.dim;
    int d = 0;
    for (; d + kWidth <= a.dim; d += kWidth) store_words(to + d, words_of<kType>(x + d, kWidth, top));
    if (d == a.dim) continue;
    alignas(64) uint32_t words[kWidth];
    store_ints(words, words_of<kType>(x + d, a.dim - d, top));
    for (int j = 0; d + j < a.dim; ++j) to[d + j] = static_cast<Word>(words[j]);
  }
  return is_finite<kType>(top);
}

/// bf16: two neighbouring positions share a word per dimension.
inline bool store_v_pairs(const KvStoreArgs& a) {
  const int padded = kv_padded_dim(KvType::kBf16, a.dim);
  Ints top = ints(0);
  const auto bits = [&](int i, int d) {
    const Ints v = bf16_bits(load_part(a.x + i * a.stride + d, a.dim - d));
    top = max_unsigned(top, and_ints(v, ints(0x7fffffff)));
    return v;
  };
  for (int i = 0; i < a.n; ++i) {
    const int p = a.position + i;
    uint16_t* to = reinterpret_cast<uint16_t*>(a.tile) + static_cast<int64_t>(p / 2) * padded * 2;
    const bool both = p % 2 == 0 && i + 1 < a.n;
    for (int d = 0; d < padded; d += kWidth) {
      const Ints first = shift_right_16(bits(i, d));
      if (both) {
        store_ints(to + 2 * d, or_ints(first, bits(i + 1, d)));
      } else {
        alignas(64) uint32_t words[kWidth];
        store_ints(words, first);
        for (int j = 0; j < kWidth; ++j) to[2 * (d + j) + p % 2] = static_cast<uint16_t>(words[j]);
      }
    }
    i += both;
  }
  return is_finite<KvType::kBf16>(top);
}

/// q8_0: up to 32 values of a position under one scale, as integers in lanes; docs/kernels.md#q8.
struct Block {
  static constexpr int kVectors = kKvBlock / kWidth;
  Ints q[kVectors];
  uint16_t scale;
  bool finite;
};
STOKER_INLINE Block quantize_block(const float* x, int n) {
  Block block;
  Floats v[Block::kVectors];
  Ints top = ints(0);
  STOKER_UNROLL for (int i = 0; i < Block::kVectors; ++i) {
    v[i] = load_part(x + kWidth * i, n - kWidth * i);
    top = max_unsigned(top, to_bits(magnitude(v[i])));
  }
  const Ints amax = ints(max_unsigned_lane(top));
  alignas(64) uint16_t scales[kWidth];
  store_low_halves(scales, to_halves(div(from_bits(amax), floats(127.0f))));
  block.finite = max_unsigned_lane(amax) < 0x7f800000u && scales[0] < 0x7c00u;
  block.scale = block.finite ? scales[0] : uint16_t{0x7e00};
  const bool zero = !block.finite || scales[0] == 0;
  const Floats inverse = div(floats(1.0f), load_halves(scales));
  STOKER_UNROLL for (int i = 0; i < Block::kVectors; ++i) {
    const Floats bounded = max(min(mul(v[i], inverse), floats(127.0f)), floats(-127.0f));
    block.q[i] = zero ? ints(0) : to_ints(round_even(bounded));
  }
  return block;
}

inline bool store_k_blocks(const KvStoreArgs& a) {
  auto* scales = reinterpret_cast<uint16_t*>(a.tile + kv_scales_offset(a.dim)) + a.position;
  bool finite = true;
  for (int first = 0; first < a.dim; first += kKvBlock, scales += kTile) {
    const int n = a.dim - first < kKvBlock ? a.dim - first : kKvBlock;
    int8_t* to = reinterpret_cast<int8_t*>(a.tile) + first * kTile + a.position;
    int i = 0;
    for (; i + kWidth <= a.n; i += kWidth) {
      Ints squares[Block::kVectors][kWidth];
      STOKER_UNROLL for (int j = 0; j < kWidth; ++j) {
        const Block block = quantize_block(a.x + (i + j) * a.stride + first, n);
        finite &= block.finite;
        scales[i + j] = block.scale;
        STOKER_UNROLL for (int v = 0; v < Block::kVectors; ++v) squares[v][j] = block.q[v];
      }
      STOKER_UNROLL for (int v = 0; v < Block::kVectors; ++v) {
        transpose(squares[v]);
        for (int j = 0; j < kWidth && kWidth * v + j < n; ++j) {
          store_low_bytes(to + (kWidth * v + j) * kTile + i, squares[v][j]);
        }
      }
    }
    for (; i < a.n; ++i) {
      const Block block = quantize_block(a.x + i * a.stride + first, n);
      finite &= block.finite;
      scales[i] = block.scale;
      alignas(64) int8_t bytes[kKvBlock];
      STOKER_UNROLL for (int v = 0; v < Block::kVectors; ++v) store_low_bytes(bytes + kWidth * v, block.q[v]);
      for (int j = 0; j < n; ++j) to[j * kTile + i] = bytes[j];
    }
  }
  return finite;
}

inline bool store_v_blocks(const KvStoreArgs& a) {
  auto* scales = reinterpret_cast<uint16_t*>(a.tile + kv_scales_offset(a.dim));
  bool finite = true;
  for (int i = 0; i < a.n; ++i) {
    const int p = a.position + i;
    int8_t* to = reinterpret_cast<int8_t*>(a.tile) + static_cast<int64_t>(p) * a.dim;
    for (int first = 0; first < a.dim; first += kKvBlock) {
      const int n = a.dim - first < kKvBlock ? a.dim - first : kKvBlock;
      const Block block = quantize_block(a.x + i * a.stride + first, n);
      finite &= block.finite;
      scales[kv_v_scale_index(a.dim, first, p)] = block.scale;
      alignas(64) int8_t bytes[kKvBlock];
      STOKER_UNROLL for (int v = 0; v < Block::kVectors; ++v) store_low_bytes(bytes + kWidth * v, block.q[v]);
      for (int j = 0; j < n; ++j) to[first + j] = bytes[j];
    }
  }
  return finite;
}
