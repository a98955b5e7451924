// What the types of both block sizes share.

// Four lines of nibbles: values 0 ... 15 are the low ones, 16 ... 31 the high ones.
STOKER_INLINE void split_nibbles(const uint8_t* lines, Ints (&v)[8]) {
  STOKER_UNROLL for (int i = 0; i < 4; ++i) {
    const Ints x = load(lines + i * kLineBytes);
    v[i] = both(x, bytes(15));
    v[i + 4] = both(bits_down(x, 4), bytes(15));
  }
}

// The 16 levels of IQ4_NL and IQ4_XS.
constexpr int kLevelsIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
struct ByteTable {
  uint8_t bytes[16];
};
constexpr ByteTable raised(const int (&levels)[16], int by) {
  ByteTable table{};
  for (int i = 0; i < 16; ++i) table.bytes[i] = static_cast<uint8_t>(levels[i] + by);
  return table;
}
