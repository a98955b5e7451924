// How the 32-blocks of R16 become bytes.
//   kLines, kHeader    lines, and header bytes of all 16 rows, per block
//   kOffset            decoded bytes are this much above the weights
//   kMax               the largest decoded byte; 0: bytes with a sign, that kRaise may make unsigned
//   kHasMin
//   kStream            up to so many rows, AVX-512 computes as fast as one stream of reads comes in
//   decode(lines, v)   v[i]: weights 4 i ... 4 i + 3 of the rows
//   scale(lines, header), min(lines)

// Adds 16 to weight k where bit k of the row's word `bits` is set.
STOKER_INLINE void add_fifth_bits(Ints bits, Ints (&v)[8]) {
  constexpr uint8_t kFirstByte[16] = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
  STOKER_UNROLL for (int i = 0; i < 8; ++i) {
    const Ints copies = look_up(bits, add_bytes(table_of(kFirstByte), bytes(i / 2)));
    v[i] = add_where(v[i], 16, copies, ints(i % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010)));
  }
}

// Lines: the 32 signed bytes.
struct Q8_0 {
  static constexpr int kLines = 8, kHeader = 32, kOffset = kRaise, kMax = 0, kStream = 4;
  static constexpr bool kHasMin = false;
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) v[i] = raise(load(lines + i * kLineBytes));
  }
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) { return halves(header); }
};

// Lines: nibbles.
struct Q4_0 {
  static constexpr int kLines = 4, kHeader = 32, kOffset = 8, kMax = 15, kStream = 2;
  static constexpr bool kHasMin = false;
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) { split_nibbles(lines, v); }
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) { return halves(header); }
};

// Lines: scale and minimum, nibbles.
struct Q4_1 {
  static constexpr int kLines = 5, kHeader = 0, kOffset = 0, kMax = 15, kStream = 1;
  static constexpr bool kHasMin = true;
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) { split_nibbles(lines + kLineBytes, v); }
  static STOKER_INLINE Floats scale(const uint8_t* lines, const uint8_t*) { return low_halves(load(lines)); }
  static STOKER_INLINE Floats min(const uint8_t* lines) { return high_halves(load(lines)); }
};

// Lines: fifth bits, nibbles.
struct Q5_0 {
  static constexpr int kLines = 5, kHeader = 32, kOffset = 16, kMax = 31, kStream = 2;
  static constexpr bool kHasMin = false;
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) {
    split_nibbles(lines + kLineBytes, v);
    add_fifth_bits(load(lines), v);
  }
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) { return halves(header); }
};

// Lines: scale and minimum, fifth bits, nibbles.
struct Q5_1 {
  static constexpr int kLines = 6, kHeader = 0, kOffset = 0, kMax = 31, kStream = 2;
  static constexpr bool kHasMin = true;
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) {
    split_nibbles(lines + 2 * kLineBytes, v);
    add_fifth_bits(load(lines + kLineBytes), v);
  }
  static STOKER_INLINE Floats scale(const uint8_t* lines, const uint8_t*) { return low_halves(load(lines)); }
  static STOKER_INLINE Floats min(const uint8_t* lines) { return high_halves(load(lines)); }
};

// Lines: nibbles that choose a level.
struct Iq4Nl {
  static constexpr int kLines = 4, kHeader = 32, kOffset = kRaise, kMax = 0, kStream = 1;
  static constexpr bool kHasMin = false;
  static constexpr ByteTable kLevels = raised(kLevelsIq4, kRaise);
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) {
    split_nibbles(lines, v);
    STOKER_UNROLL for (int i = 0; i < 8; ++i) v[i] = look_up(table_of(kLevels.bytes), v[i]);
  }
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) { return halves(header); }
};

// Lines: four-bit floats (E2M1), doubled here and 12 above zero. Header: exponent bytes (E8M0).
struct Mxfp4 {
  static constexpr int kLines = 4, kHeader = 16, kOffset = 12, kMax = 24, kStream = 1;
  static constexpr bool kHasMin = false;
  static constexpr uint8_t kLevels[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) {
    split_nibbles(lines, v);
    STOKER_UNROLL for (int i = 0; i < 8; ++i) v[i] = look_up(table_of(kLevels), v[i]);
  }
  // 2^(e - 128), because the levels are doubled; e = 0 and 1 are denormal.
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) {
    const Ints e = exponents(header);
    const Ints normal = shift_left(add(e, ints(-1)), 23), denormal = shift_left_by(ints(0x00200000), e);
    return as_floats(select_less(e, ints(2), denormal, normal));
  }
};
