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

// Collects the headers of a run of blocks, and sends them off in whole lines.
class HeaderLines {
 public:
  template <int bytes>
  STOKER_INLINE void add(const std::byte* header, int64_t row_bytes) {
    STOKER_UNROLL for (int row = 0; row < 16; ++row) {
      __builtin_memcpy(bytes_ + used_ + row * bytes, header + row * row_bytes, bytes);
    }
    used_ += 16 * bytes;
  }

  // Zeros fill the last line. Returns the end.
  STOKER_INLINE std::byte* send(std::byte* out) {
    __builtin_memset(bytes_ + used_, 0, kLineBytes);
    for (int at = 0; at < used_; at += kLineBytes, out += kLineBytes) {
      STOKER_UNROLL for (int part = 0; part < 16 / kWidth; ++part) {
        stream(out + part * kWidth * 4, load(bytes_ + at + part * kWidth * 4));
      }
    }
    return out;
  }

 private:
  alignas(kLineBytes) std::byte bytes_[8 * 32 + kLineBytes];  // 8 blocks of 16 headers of 2 bytes, and zeros.
  int used_ = 0;
};

// Byte by byte as the layout says: for groups with missing rows, and what is too short for words of 16 bytes.
// Not inlined: it serves all types.
[[gnu::noinline]] void pack_slowly(const PackArgs& args, const R16Layout& layout) noexcept {
  // An odd number of BF16 ends with half a word.
  const int64_t row_bytes = args.k / layout.weights * layout.block_bytes + args.k % layout.weights * 2;
  const int64_t n_blocks = (row_bytes + layout.block_bytes - 1) / layout.block_bytes;
  const int64_t line_bytes = layout.words * kLineBytes, header_bytes = 16 * layout.header_bytes;
  const int64_t run = layout.weights == 256 ? 2 : 8;  // r16_run, which must not be inlined from a header here.
  const int64_t used = n_blocks * (line_bytes + header_bytes);
  __builtin_memset(args.group, 0, static_cast<size_t>((used + kLineBytes - 1) / kLineBytes * kLineBytes));
  for (int row = 0; row < args.n_rows; ++row) {
    const std::byte* bytes = args.rows + row * args.row_bytes;
    for (int64_t i = 0; i < row_bytes; ++i) {
      const int64_t block = i / layout.block_bytes, run_begin = block / run * run;
      const int64_t run_end = run_begin + run < n_blocks ? run_begin + run : n_blocks;
      const int at = static_cast<int>(i % layout.block_bytes), word = at - layout.word_offset;
      if (word >= 0 && word < 4 * layout.words) {
        const int64_t headers_before = (run_end * header_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
        std::byte* lines = args.group + block * line_bytes + headers_before;
        lines[word / 4 * kLineBytes + 4 * row + word % 4] = bytes[i];
      } else {
        std::byte* headers = args.group + run_begin * line_bytes + block * header_bytes;
        headers[row * layout.header_bytes + at - layout.header_offset] = bytes[i];
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
    constexpr int64_t kRun = r16_run(kLayout);
    std::byte* out = args.group;
    for (int64_t begin = 0; begin < n_blocks; begin += kRun) {
      const int64_t end = begin + kRun < n_blocks ? begin + kRun : n_blocks;
      HeaderLines headers;
      for (int64_t block = begin; block < end; ++block) {
        headers.template add<kLayout.header_bytes>(args.rows + block * kBlockBytes + kLayout.header_offset,
                                                   args.row_bytes);
      }
      out = headers.send(out);
      for (int64_t block = begin; block < end; ++block) {
        fetch_next_group(args.rows, args.row_bytes, block * kBlockBytes, kBlockBytes);
        pack_words<kLayout.words>(args.rows + block * kBlockBytes + kLayout.word_offset, args.row_bytes, out);
        out += kLayout.words * kLineBytes;
      }
    }
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
