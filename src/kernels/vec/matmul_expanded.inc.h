// Many rows times 256-blocks that are costly to decode: a group's weights are decoded once, to bytes and words in
// scratch, and not once per tile. There they look like another type.

template <class Type>
struct Expanded256 {
  static constexpr int kSubs = Type::kSubs, kOffset = Type::kOffset, kMax = Type::kMax;
  static constexpr bool kHasMin = Type::kHasMin, kJumps = false;
  static constexpr int kHeader = 0, kPeriod = 1, kStream = 1;
  // Lines: 64 of decoded weights, sub-scales, minimums, d, dmin.
  static constexpr int kScales = 64, kMins = kScales + kSubs, kScale = kMins + (kHasMin ? kSubs : 0);
  static constexpr int kLines = kScale + (kHasMin ? 2 : 1);

  static STOKER_INLINE void decode(const uint8_t* lines, int part, int, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) v[i] = load(lines + (8 * part + i) * kLineBytes);
  }
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) { return load(lines + (kScales + j) * kLineBytes); }
  static STOKER_INLINE Ints sub_min(const uint8_t* lines, int j) { return load(lines + (kMins + j) * kLineBytes); }
  static STOKER_INLINE Floats scale(const uint8_t* lines, const uint8_t*) {
    return as_floats(load(lines + kScale * kLineBytes));
  }
  static STOKER_INLINE Floats min(const uint8_t* lines) { return as_floats(load(lines + (kScale + 1) * kLineBytes)); }

  static STOKER_INLINE void expand(const uint8_t* lines, const uint8_t* header, uint8_t* out) {
    for (int part = 0; part < 8 / Type::kPeriod; ++part) {
      STOKER_UNROLL for (int c = 0; c < Type::kPeriod; ++c) {
        Ints v[8];
        Type::decode(lines, part, c, v);
        STOKER_UNROLL for (int i = 0; i < 8; ++i) store(out + (8 * (part * Type::kPeriod + c) + i) * kLineBytes, v[i]);
      }
    }
    STOKER_UNROLL for (int j = 0; j < kSubs; ++j) {
      store(out + (kScales + j) * kLineBytes, Type::sub_scale(lines, j));
      if constexpr (kHasMin) store(out + (kMins + j) * kLineBytes, Type::sub_min(lines, j));
    }
    store(out + kScale * kLineBytes, as_ints(Type::scale(lines, header)));
    if constexpr (kHasMin) store(out + (kScale + 1) * kLineBytes, as_ints(Type::min(lines)));
  }
};

template <class Type>
STOKER_INLINE void expand_group(const MatmulArgs& args, int64_t group) {
  using Expanded = Expanded256<Type>;
  auto* out = reinterpret_cast<uint8_t*>(args.scratch);
  for_blocks_256<Type>(
      args, group, [&](const uint8_t* lines, const uint8_t* header, int64_t) __attribute__((always_inline)) {
        touch_lines<Type::kLines>(lines);
        STOKER_UNROLL for (int part = 0; part < kParts; ++part) {
          Expanded::expand(lines + part * kLineBytes / kParts, header + part * Type::kHeader / kParts,
                           out + part * kLineBytes / kParts);
        }
        out += Expanded::kLines * kLineBytes;
      });
}

// Decoding to scratch costs about as much as half a tile of 16 rows.
constexpr int kLeastTiles = 8;

template <class Type>
void many_rows_256(const MatmulArgs& args) noexcept {
  using Wide = Family256<Expanded256<Type>>;
  const int64_t n_tiles = (args.row_end - args.row_begin) / Wide::kRows;
  if (n_tiles < kLeastTiles || args.k / 256 * Wide::kBlockBytes > kMatmulScratchBytes)
    return any_rows<Family256<Type>>(args);
  MatmulArgs wide = args;
  wide.w = args.scratch;
  wide.group_bytes = 0;  // All groups go through the same memory.
  for (int64_t g = args.group_begin; g < args.group_end; ++g) {
    expand_group<Type>(args, g);
    for (int64_t i = 0; i < n_tiles; ++i) {
      Wide::template tile<Wide::kRows, Fetch::kCached>(wide, g, args.row_begin + i * Wide::kRows);
    }
  }
  MatmulArgs rest = args;
  rest.row_begin += n_tiles * Wide::kRows;
  any_rows<Family256<Type>>(rest);
}

template <class Type>
constexpr MatmulKernels kernels_expanding() {
  return {one_row<Family256<Type>>, any_rows<Family256<Type>>, many_rows_256<Type>};
}
