// From 16 rows of a file to one group of R16. Whole lines leave with stores that go past the caches: the group is not
// read again soon, and reading it first would cost as much as writing it.

// Source bytes [offset, offset + bytes) of all rows are being read: fetches as much of the group that follows in the
// file, in the order of memory.
STOKER_INLINE void fetch_next_group(const std::byte* rows, int64_t row_bytes, int64_t offset, int bytes) {
  const std::byte* next = rows + 16 * (row_bytes + offset);
  STOKER_UNROLL for (int i = 0; i < 16 * bytes; i += kLineBytes) prefetch(next + i);
}

// Words first ... 3 of the 16 bytes at `rows` of each of the 16 rows, to lines first ... 3.
template <int first>
STOKER_INLINE void pack_four(const std::byte* rows, int64_t row_bytes, std::byte* lines) {
  STOKER_UNROLL for (int part = 0; part < 16 / kWidth; ++part) {
    Ints words[4];
    transpose(rows + part * kWidth * row_bytes, row_bytes, words);
    STOKER_UNROLL for (int i = first; i < 4; ++i) stream(lines + i * kLineBytes + part * kWidth * 4, words[i]);
  }
}

// n words of each row; n >= 4, so that the last few may come with some before them.
template <int n>
STOKER_INLINE void pack_words(const std::byte* rows, int64_t row_bytes, std::byte* lines) {
  STOKER_UNROLL for (int w = 0; w + 4 <= n; w += 4) pack_four<0>(rows + 4 * w, row_bytes, lines + w * kLineBytes);
  if constexpr (n % 4 != 0) pack_four<4 - n % 4>(rows + 4 * (n - 4), row_bytes, lines + (n - 4) * kLineBytes);
}

// The same for any n.
STOKER_INLINE void pack_words(const std::byte* rows, int64_t row_bytes, int64_t n, std::byte* lines) {
  for (int64_t w = 0; w + 4 <= n; w += 4) {
    fetch_next_group(rows, row_bytes, 4 * w, 16);
    pack_four<0>(rows + 4 * w, row_bytes, lines + w * kLineBytes);
  }
  const std::byte* last = rows + 4 * (n - 4);
  lines += (n - 4) * kLineBytes;
  if (n % 4 == 1) pack_four<3>(last, row_bytes, lines);
  if (n % 4 == 2) pack_four<2>(last, row_bytes, lines);
  if (n % 4 == 3) pack_four<1>(last, row_bytes, lines);
}

// Collects the headers of 16 rows, and sends them off line by line.
class HeaderLines {
 public:
  explicit HeaderLines(std::byte* out) : out_(out) {}

  template <int bytes>
  STOKER_INLINE void add(const std::byte* header, int64_t row_bytes) {
    STOKER_UNROLL for (int row = 0; row < 16; ++row) {
      __builtin_memcpy(line_ + used_ + row * bytes, header + row * row_bytes, bytes);
    }
    used_ += 16 * bytes;
    if (used_ == kLineBytes) send();
  }

  // Zeros fill the last line.
  STOKER_INLINE void finish() {
    if (used_ == 0) return;
    __builtin_memset(line_ + used_, 0, static_cast<size_t>(kLineBytes - used_));
    send();
  }

 private:
  STOKER_INLINE void send() {
    STOKER_UNROLL for (int part = 0; part < 16 / kWidth; ++part) {
      stream(out_ + part * kWidth * 4, load(line_ + part * kWidth * 4));
    }
    out_ += kLineBytes;
    used_ = 0;
  }

  alignas(kLineBytes) std::byte line_[kLineBytes];
  std::byte* out_;
  int used_ = 0;
};

// Byte by byte as the layout says: for groups with missing rows, and what is too short for words of 16 bytes.
// Not inlined: it serves all types.
[[gnu::noinline]] void pack_slowly(const PackArgs& args, const R16Layout& layout) noexcept {
  // An odd number of BF16 ends with half a word.
  const int64_t row_bytes = args.k / layout.weights * layout.block_bytes + args.k % layout.weights * 2;
  const int64_t n_blocks = (row_bytes + layout.block_bytes - 1) / layout.block_bytes;
  std::byte* headers = args.group + n_blocks * layout.words * kLineBytes;
  const int64_t used = n_blocks * (layout.words * kLineBytes + 16 * layout.header_bytes);
  __builtin_memset(args.group, 0, static_cast<size_t>((used + kLineBytes - 1) / kLineBytes * kLineBytes));
  for (int row = 0; row < args.n_rows; ++row) {
    const std::byte* bytes = args.rows + row * args.row_bytes;
    for (int64_t i = 0; i < row_bytes; ++i) {
      const int64_t block = i / layout.block_bytes;
      const int at = static_cast<int>(i % layout.block_bytes), word = at - layout.word_offset;
      if (word >= 0 && word < 4 * layout.words) {
        args.group[(block * layout.words + word / 4) * kLineBytes + 4 * row + word % 4] = bytes[i];
      } else {
        headers[(block * 16 + row) * layout.header_bytes + at - layout.header_offset] = bytes[i];
      }
    }
  }
}

template <gguf::TensorType kType>
void pack(const PackArgs& args) noexcept {
  constexpr R16Layout kLayout = r16_layout(kType);
  constexpr int kBlockBytes = kLayout.block_bytes;
  const int64_t n_blocks = args.k / kLayout.weights;
  if (args.n_rows < 16 || args.k % kLayout.weights != 0 || n_blocks * kBlockBytes < 16) {
    pack_slowly(args, kLayout);
    return;
  }
  if constexpr (kLayout.header_bytes == 0) {
    pack_words(args.rows, args.row_bytes, n_blocks * kBlockBytes / 4, args.group);
  } else {
    HeaderLines headers(args.group + n_blocks * kLayout.words * kLineBytes);
    const std::byte* blocks = args.rows;
    std::byte* lines = args.group;
    for (int64_t block = 0; block < n_blocks; ++block) {
      fetch_next_group(args.rows, args.row_bytes, block * kBlockBytes, kBlockBytes);
      pack_words<kLayout.words>(blocks + kLayout.word_offset, args.row_bytes, lines);
      headers.template add<kLayout.header_bytes>(blocks + kLayout.header_offset, args.row_bytes);
      blocks += kBlockBytes;
      lines += kLayout.words * kLineBytes;
    }
    headers.finish();
  }
  finish_streams();
}

// F16 has no words: two neighbours are one for the transposition, and are taken apart then.
void pack_f16(const PackArgs& args) noexcept {
  if (args.n_rows < 16 || args.k % 8 != 0) {
    pack_slowly(args, r16_layout(gguf::TensorType::kF16));
    return;
  }
  for (int64_t k = 0; k < args.k; k += 8) {
    fetch_next_group(args.rows, args.row_bytes, 2 * k, 16);
    STOKER_UNROLL for (int part = 0; part < 16 / kWidth; ++part) {
      Ints words[4];
      transpose(args.rows + 2 * k + part * kWidth * args.row_bytes, args.row_bytes, words);
      std::byte* out = args.group + k * 32 + part * kWidth * 2;
      STOKER_UNROLL for (int i = 0; i < 4; ++i) stream_halves(out + i * 64, words[i]);
    }
  }
  finish_streams();
}
