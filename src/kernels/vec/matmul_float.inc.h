// Float weights, activations as they are: sum = fma(w, x, sum) for k ascending from 0.
//
// A type says where the weights k and k + 1 of a vector's rows are (even, odd), and where the 16 rows lie: kBytes for
// two weights of all rows, kPartBytes from one vector's rows to the next.

struct F32 {
  static constexpr int kBytes = 128, kPartBytes = kWidth * 4;
  static STOKER_INLINE Floats even(const uint8_t* w) { return as_floats(load(w)); }
  static STOKER_INLINE Floats odd(const uint8_t* w) { return as_floats(load(w + 64)); }
};

struct F16 {
  static constexpr int kBytes = 64, kPartBytes = kWidth * 2;
  static STOKER_INLINE Floats even(const uint8_t* w) { return halves(w); }
  static STOKER_INLINE Floats odd(const uint8_t* w) { return halves(w + 32); }
};

// Two neighbours in a lane; an odd k has a zero in the last high half, which is never multiplied.
struct Bf16 {
  static constexpr int kBytes = 64, kPartBytes = kWidth * 4;
  static STOKER_INLINE Floats even(const uint8_t* w) { return as_floats(shift_left(load(w), 16)); }
  static STOKER_INLINE Floats odd(const uint8_t* w) {
    return as_floats(both(load(w), ints(static_cast<int>(0xffff0000))));
  }
};

template <class Type>
struct FamilyFloat {
  static constexpr int kRows = kFloatRows < kTileRows ? kFloatRows : kTileRows, kStreamRows = 1;

  template <int N, Fetch kFetch>
  static void tile(const MatmulArgs& args, int64_t group, int64_t row) noexcept {
    const uint8_t* w = group_start(args, group);
    Ahead ahead(args, group);
    const int64_t stride = args.x->f32_stride;
    const float* x = args.x->f32 + row * stride;
    Floats sums[kParts][N];
    clear(sums);
    int64_t k = 0;
    for (; k + 2 <= args.k; k += 2, w += Type::kBytes) {
      if (kFetch == Fetch::kAhead) ahead.template fetch<Type::kBytes>();
      if (kFetch == Fetch::kStream) ahead.template fetch_if_spread<Type::kBytes>();
      add_weights(w, x + k, stride, 0, sums);
      add_weights(w, x + k + 1, stride, 1, sums);
    }
    if (k < args.k) add_weights(w, x + k, stride, 0, sums);
    store_rows(args, group, row, sums);
  }

 private:
  template <int N>
  static STOKER_INLINE void add_weights(const uint8_t* w, const float* x, int64_t stride, int odd,
                                        Floats (&sums)[kParts][N]) {
    Floats weights[kParts];
    STOKER_UNROLL for (int part = 0; part < kParts; ++part) {
      const uint8_t* rows = w + part * Type::kPartBytes;
      weights[part] = odd ? Type::odd(rows) : Type::even(rows);
    }
    STOKER_UNROLL for (int t = 0; t < N; ++t) {
      const Floats value = floats(x[t * stride]);
      STOKER_UNROLL for (int part = 0; part < kParts; ++part) {
        sums[part][t] = fma(weights[part], value, sums[part][t]);
      }
    }
  }
};
