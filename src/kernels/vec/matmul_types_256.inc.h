// How the 256-blocks of R16 become bytes and scales.
//   kLines, kHeader   lines, and header bytes of all 16 rows, per block
//   kSubs             8 sub-blocks of 32 or 16 of 16
//   kOffset           decoded bytes are this much above the weights
//   kMax              the largest decoded byte; 0: bytes with a sign, that kRaise may make unsigned
//   kHasMin
//   kStream           up to so many rows, AVX-512 computes as fast as one stream of reads comes in
//   kJumps            decode does not go through the lines in ascending order
//   kPeriod           decode is called with part = 0 ... 8 / kPeriod - 1 and, unrolled, c = 0 ... kPeriod - 1
//   decode(lines, part, c, v)   v[i]: weights 32 (part * kPeriod + c) + 4 i ... of the rows
//   sub_scale(lines, j), sub_min(lines, j)    as integers
//   scale(lines, header), min(lines)          d and dmin

// Byte b of every lane as a number; its nibble n.
STOKER_INLINE Ints byte_of(Ints v, int b) { return both(shift_right(v, 8 * b), ints(255)); }
STOKER_INLINE Ints nibble_of(Ints v, int n) { return both(shift_right(v, 4 * n), ints(15)); }

// The 6-bit scales and minimums that Q4_K and Q5_K share, in lines 1 to 3: the lower four of each lie whole in line 1
// (scales) or 2 (minimums), the upper four have their low nibbles in line 3 and their two high bits in the other.
// `low` has the nibbles of the upper four in its low halves of bytes.
STOKER_INLINE Ints six_bits(Ints whole, Ints low, int j) {
  const Ints lower = both(whole, bytes(0x3f));
  const Ints upper = either(both(low, bytes(0x0f)), both(bits_down(whole, 2), bytes(0x30)));
  return byte_of(j < 4 ? lower : upper, j % 4);
}
STOKER_INLINE Ints six_bit_scale(const uint8_t* lines, int j) {
  return six_bits(load(lines + kLineBytes), load(lines + 3 * kLineBytes), j);
}
STOKER_INLINE Ints six_bit_min(const uint8_t* lines, int j) {
  return six_bits(load(lines + 2 * kLineBytes), bits_down(load(lines + 3 * kLineBytes), 4), j);
}

// Lines: 4 of nibble pairs (scale, minimum), 16 of two-bit weights, d and dmin.
struct Q2K {
  static constexpr int kLines = 21, kHeader = 0, kSubs = 16, kOffset = 0, kMax = 3, kPeriod = 4, kStream = 1;
  static constexpr bool kHasMin = true, kJumps = false;
  static STOKER_INLINE void decode(const uint8_t* lines, int part, int c, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) {
      v[i] = both(bits_down(load(lines + (4 + 8 * part + i) * kLineBytes), 2 * c), bytes(3));
    }
  }
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) {
    return nibble_of(load(lines + j / 4 * kLineBytes), 2 * (j % 4));
  }
  static STOKER_INLINE Ints sub_min(const uint8_t* lines, int j) {
    return nibble_of(load(lines + j / 4 * kLineBytes), 2 * (j % 4) + 1);
  }
  static STOKER_INLINE Floats scale(const uint8_t* lines, const uint8_t*) { return low_halves(load(last(lines))); }
  static STOKER_INLINE Floats min(const uint8_t* lines) { return high_halves(load(last(lines))); }

 private:
  static STOKER_INLINE const uint8_t* last(const uint8_t* lines) { return lines + 20 * kLineBytes; }
};

// Lines: 8 of third bits (bit j of the bytes for weights 32 j ...), 16 of two-bit weights, 3 of 6-bit scales.
struct Q3K {
  static constexpr int kLines = 27, kHeader = 32, kSubs = 16, kOffset = 4, kMax = 7, kPeriod = 4, kStream = 1;
  static constexpr bool kHasMin = false, kJumps = true;
  static STOKER_INLINE void decode(const uint8_t* lines, int part, int c, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) {
      const Ints low = bits_down(load(lines + (8 + 8 * part + i) * kLineBytes), 2 * c);
      const Ints bits = bits_down(load(lines + i * kLineBytes), 4 * part);
      const Ints high = c < 2 ? bits_up(bits, 2 - c) : bits_down(bits, c - 2);
      v[i] = either(both(low, bytes(3)), both(high, bytes(4)));
    }
  }
  // Low nibbles in two lines (those of the first half low in their bytes), high bits in the third; 32 above the scale.
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) {
    const Ints low = nibble_of(load(lines + (24 + j / 4 % 2) * kLineBytes), 2 * (j % 4) + j / 8);
    const Ints high = both(shift_right(load(lines + 26 * kLineBytes), 8 * (j % 4) + 2 * (j / 4)), ints(3));
    return add(either(low, shift_left(high, 4)), ints(-32));
  }
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) { return halves(header); }
};

// Lines: d and dmin, 3 of scales and minimums, 32 of nibbles; sub-blocks 2 p and 2 p + 1 share 8 of them.
struct Q4K {
  static constexpr int kLines = 36, kHeader = 0, kSubs = 8, kOffset = 0, kMax = 15, kPeriod = 2, kStream = 1;
  static constexpr bool kHasMin = true, kJumps = false;
  static STOKER_INLINE void decode(const uint8_t* lines, int part, int c, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) {
      v[i] = both(bits_down(load(lines + (4 + 8 * part + i) * kLineBytes), 4 * c), bytes(15));
    }
  }
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) { return six_bit_scale(lines, j); }
  static STOKER_INLINE Ints sub_min(const uint8_t* lines, int j) { return six_bit_min(lines, j); }
  static STOKER_INLINE Floats scale(const uint8_t* lines, const uint8_t*) { return low_halves(load(lines)); }
  static STOKER_INLINE Floats min(const uint8_t* lines) { return high_halves(load(lines)); }
};

// Lines: d and dmin, 3 of scales and minimums, 8 of fifth bits (bit j of the bytes for sub-block j), 32 of nibbles.
struct Q5K {
  static constexpr int kLines = 44, kHeader = 0, kSubs = 8, kOffset = 0, kMax = 31, kPeriod = 2, kStream = 1;
  static constexpr bool kHasMin = true, kJumps = false;
  static STOKER_INLINE void decode(const uint8_t* lines, int part, int c, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) {
      const Ints low = both(bits_down(load(lines + (12 + 8 * part + i) * kLineBytes), 4 * c), bytes(15));
      const Ints bits = bits_down(load(lines + (4 + i) * kLineBytes), 2 * part);
      v[i] = either(low, both(bits_up(bits, 4 - c), bytes(16)));
    }
  }
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) { return six_bit_scale(lines, j); }
  static STOKER_INLINE Ints sub_min(const uint8_t* lines, int j) { return six_bit_min(lines, j); }
  static STOKER_INLINE Floats scale(const uint8_t* lines, const uint8_t*) { return low_halves(load(lines)); }
  static STOKER_INLINE Floats min(const uint8_t* lines) { return high_halves(load(lines)); }
};

// Lines: 32 of low nibbles, 16 of two high bits, 4 of signed scales.
struct Q6K {
  static constexpr int kLines = 52, kHeader = 32, kSubs = 16, kOffset = 32, kMax = 63, kPeriod = 4, kStream = 2;
  static constexpr bool kHasMin = false, kJumps = true;
  static STOKER_INLINE void decode(const uint8_t* lines, int part, int c, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) {
      const Ints low = bits_down(load(lines + (16 * part + 8 * (c % 2) + i) * kLineBytes), 4 * (c / 2));
      const Ints bits = load(lines + (32 + 8 * part + i) * kLineBytes);
      const Ints high = c < 2 ? bits_up(bits, 4 - 2 * c) : bits_down(bits, 2 * c - 4);
      v[i] = either(both(low, bytes(15)), both(high, bytes(0x30)));
    }
  }
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) {
    return shift_right_signed(shift_left(load(lines + (48 + j / 4) * kLineBytes), 24 - 8 * (j % 4)), 24);
  }
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) { return halves(header); }
};

// Lines: d and the high bits of the scales, their low nibbles, 32 of nibbles that choose a level.
struct Iq4Xs {
  static constexpr int kLines = 34, kHeader = 0, kSubs = 8, kOffset = kRaise, kMax = 0, kPeriod = 1, kStream = 1;
  static constexpr bool kHasMin = false, kJumps = false;
  static constexpr ByteTable kLevels = raised(kLevelsIq4, kRaise);
  static STOKER_INLINE void decode(const uint8_t* lines, int part, int, Ints (&v)[8]) {
    split_nibbles(lines + (2 + 4 * part) * kLineBytes, v);
    STOKER_UNROLL for (int i = 0; i < 8; ++i) v[i] = look_up(table_of(kLevels.bytes), v[i]);
  }
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) {
    const Ints high = both(shift_right(load(lines), 16 + 2 * j), ints(3));
    return add(either(nibble_of(load(lines + kLineBytes), j), shift_left(high, 4)), ints(-32));
  }
  static STOKER_INLINE Floats scale(const uint8_t* lines, const uint8_t*) { return low_halves(load(lines)); }
};
