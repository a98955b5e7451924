// From a tile (one group of 16 matrix rows times a few activation rows) to the three kernels of a type.
//
// A tile keeps its sums in registers from the first weight to the last: weights are decoded once per tile, each is
// multiplied with all activation rows of the tile, and the f32 sums are written once. Nothing is expanded in memory, so
// one row and many rows run the same code; 16 rows (AVX2: 8) hide the decoding.
//
// Family::tile<N, kFetch> computes rows row ... row + N - 1 of one group, N up to Family::kRows <= kTileRows.

// Sanitizers instrument every read of unrolled code: with all tiles a file takes 80 s to build, with two 20 s.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kTileRows = 2;
#else
constexpr int kTileRows = kIntRows;
#endif
constexpr int kSmallRows = kTileRows < 8 ? kTileRows : 8;  // The largest of the tiles that exist for every size.

// How a tile gets the weights of its group.
enum class Fetch {
  kCached,  // They are in the second-level cache.
  kStream,  // From memory, and the processor's own prefetcher runs ahead. It is the fastest, but follows one ascending
            // stream of whole lines only, and not across the pauses between reads that several rows make.
  kAhead,   // From memory; the next group is fetched meanwhile.
};
// With MatmulArgs::spread the last two fetch the next window of a few pages instead, a line of each page in turn. A
// prefetcher that stops at the end of a page thus works in all of them at once, and more reads are under way.

// Packed weights that the tiles of many rows go over again: they stay in the second-level cache.
constexpr int64_t kReuseBytes = 192 << 10;

constexpr int kParts = 16 / kWidth;  // Vectors that make up the 16 rows of a group; lines and headers are cut likewise.

using TileFn = void (*)(const MatmulArgs& args, int64_t group, int64_t row) noexcept;

template <class Family, int N>
constexpr TileFn kTileOf = Family::template tile<(N < Family::kRows ? N : Family::kRows),
                                                 (N <= Family::kStreamRows ? Fetch::kStream : Fetch::kAhead)>;

template <class Family>
constexpr TileFn kTiles[8] = {kTileOf<Family, 1>, kTileOf<Family, 2>, kTileOf<Family, 3>, kTileOf<Family, 4>,
                              kTileOf<Family, 5>, kTileOf<Family, 6>, kTileOf<Family, 7>, kTileOf<Family, 8>};

// The first tile brings the groups into the second-level cache, the others find them there.
template <class Family>
void rows_of_groups(const MatmulArgs& args, int64_t group_begin, int64_t group_end) noexcept {
  constexpr int kRows = Family::kRows, kSmall = kRows < kSmallRows ? kRows : kSmallRows;
  constexpr int kMostRest = kRows > kSmall ? kRows - 1 : 2 * kRows;
  int64_t row = args.row_begin;
  for (; args.row_end - row > kMostRest; row += kRows) {
    const TileFn tile = row == args.row_begin ? Family::template tile<kRows, Fetch::kAhead>
                                              : Family::template tile<kRows, Fetch::kCached>;
    for (int64_t g = group_begin; g < group_end; ++g) tile(args, g, row);
  }
  // The rest in tiles of equal size: 9 rows are 4 and 5, for a tile of one row costs as much decoding as one of 8.
  const int64_t rest = args.row_end - row;
  for (int64_t n_tiles = (rest + kSmall - 1) / kSmall, i = 0; i < n_tiles; ++i) {
    const int64_t begin = rest * i / n_tiles, end = rest * (i + 1) / n_tiles;
    for (int64_t g = group_begin; g < group_end; ++g) kTiles<Family>[end - begin - 1](args, g, row + begin);
  }
}

template <class Family>
void any_rows(const MatmulArgs& args) noexcept {
  const int64_t reuse = args.group_bytes < kReuseBytes ? kReuseBytes / args.group_bytes : 1;
  for (int64_t g = args.group_begin; g < args.group_end; g += reuse) {
    rows_of_groups<Family>(args, g, g + reuse < args.group_end ? g + reuse : args.group_end);
  }
}

template <class Family>
void one_row(const MatmulArgs& args) noexcept {
  for (int64_t g = args.group_begin; g < args.group_end; ++g) {
    Family::template tile<1, Fetch::kStream>(args, g, args.row_begin);
  }
}

template <class Family>
constexpr MatmulKernels kernels_of() {
  return {one_row<Family>, any_rows<Family>, any_rows<Family>};
}

STOKER_INLINE const uint8_t* group_start(const MatmulArgs& args, int64_t group) {
  return reinterpret_cast<const uint8_t*>(args.w) + group * args.group_bytes;
}

// What a tile fetches of the weights while it computes: the group that comes after or, with `spread`, the next window.
// Windows are counted from the page where the run begins.
class Ahead {
 public:
  STOKER_INLINE Ahead(const MatmulArgs& args, int64_t group)
      : spread_(args.spread != nullptr), at_(group_start(args, group + 1)) {
    if (!spread_) return;
    const MatmulArgs::Run& run = *args.spread;
    const auto* first = reinterpret_cast<const uint8_t*>(run.begin);
    end_ = reinterpret_cast<const uint8_t*>(run.end);
    const uint8_t* here = group_start(args, group);
    const int64_t offset = here - first + static_cast<int64_t>(reinterpret_cast<uintptr_t>(first) % kPageBytes);
    const int64_t bytes_before = offset % kWindowBytes;
    at_ = here - bytes_before + kWindowBytes + bytes_before / kStepBytes * kLineBytes;
    owed_ = bytes_before % kStepBytes;
  }

  // Before so many bytes of weights are read.
  template <int n>
  STOKER_INLINE void fetch() {
    if (spread_) return fetch_spread<n>();
    STOKER_UNROLL for (int i = 0; i < n; i += kLineBytes) prefetch(at_ + i);
    at_ += n;
  }
  template <int n>
  STOKER_INLINE void fetch_if_spread() {
    if (spread_) fetch_spread<n>();
  }

 private:
  static constexpr int64_t kPageBytes = 4096, kPages = 4, kWindowBytes = kPages * kPageBytes;
  static constexpr int64_t kStepBytes = kPages * kLineBytes;  // A line of each page at a time.

  template <int n>
  STOKER_INLINE void fetch_spread() {
    for (owed_ += n; owed_ >= kStepBytes; owed_ -= kStepBytes) {
      STOKER_UNROLL for (int page = 0; page < kPages; ++page) {
        const uint8_t* line = at_ + page * kPageBytes;
        if (line < end_) prefetch(line);
      }
      at_ += kLineBytes;
      if (reinterpret_cast<uintptr_t>(at_) % kPageBytes == 0) at_ += kWindowBytes - kPageBytes;
    }
  }

  bool spread_;
  const uint8_t *at_, *end_ = nullptr;
  int64_t owed_ = 0;  // Bytes for which nothing was fetched yet.
};

// Fetches an eighth of a super-block of the N rows of activations that come after the N rows at q.
template <int N>
STOKER_INLINE void fetch_rows(const int8_t* q, int eighth) {
  STOKER_UNROLL for (int i = 0; i < N * 32; i += kLineBytes) prefetch(q + N * 256 + eighth * N * 32 + i);
}

// Reads whole lines in ascending order.
template <int n_lines>
STOKER_INLINE void touch_lines(const uint8_t* lines) {
  STOKER_UNROLL for (int i = 0; i < n_lines; ++i) touch(lines + i * kLineBytes);
}

// f(part) for the vectors of a group. Code for few rows is unrolled, so that its sums stay in registers. For more, the
// compiler must not see that all parts read the same activations: it would keep hundreds of broadcasts on the stack.
template <int N, class F>
STOKER_INLINE void for_parts(F f) {
  if constexpr (N <= 2) {
    STOKER_UNROLL for (int part = 0; part < kParts; ++part) f(part);
  } else {
    for (int part = 0; part < kParts; ++part) {
      asm volatile("" : : : "memory");
      f(part);
    }
  }
}

template <int N>
STOKER_INLINE void clear(Floats (&sums)[kParts][N]) {
  STOKER_UNROLL for (int part = 0; part < kParts; ++part) {
    STOKER_UNROLL for (int t = 0; t < N; ++t) sums[part][t] = floats(0);
  }
}

template <int N>
STOKER_INLINE void store_rows(const MatmulArgs& args, int64_t group, int64_t row, const Floats (&sums)[kParts][N]) {
  STOKER_UNROLL for (int t = 0; t < N; ++t) {
    float* y = args.y + (row + t) * args.y_stride + group * 16;
    STOKER_UNROLL for (int part = 0; part < kParts; ++part) store(y + part * kWidth, sums[part][t]);
  }
}
