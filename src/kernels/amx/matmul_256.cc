// 256-blocks: a sub-scale times a level is a small whole number, so a block is one sum of integers. It fits one byte
// (Q2_K, Q3_K) or is 256 * high + low, two tiles of bytes: no float before the end of a block.
#include "kernels/amx/matmul_tiles.h"
#include "kernels/amx/matmul_types.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::amx {
namespace {

#include "kernels/vec/matmul_decode.inc.h"
//
#include "kernels/vec/matmul_types_256.inc.h"

// How the products of a type become bytes.
enum class Bytes { kTwo, kOne, kOneNegated };
template <class Type>
constexpr Bytes kBytes = Bytes::kTwo;
template <>
constexpr Bytes kBytes<Q2K> = Bytes::kOne;  // 0 ... 45
template <>
constexpr Bytes kBytes<Q3K> = Bytes::kOneNegated;  // -124 ... 128, so the other sign fits.

constexpr int kBlockBytes = 4096;  // Of 16 rows, one byte each.
constexpr int kSteps = 4;          // Tiles of 64 weights.
constexpr int kStepBytes = kBlockBytes / kSteps;

template <class Type>
constexpr int kPlanes = kBytes<Type> == Bytes::kTwo ? 2 : 1;
template <class Type>
constexpr int kPanelGroups = 4 / kPlanes<Type>;  // Their bytes take 16 KiB of the first-level cache.

// What a block of a group has besides the integers.
struct Head {
  Line d, dmin;
  Line mins[8];  // Pairs of 16-bit integers.
};

// 16 rows of activations times a group, yet to be scaled.
struct Unit {
  const Head* head;
  const float* da;
  const int16_t* sums;  // Of the activations, kSubs per row.
  float* y = nullptr;   // Null: there is no such unit.
};

template <class Type>
struct Scratch {
  Sums<kPanelGroups<Type>> sums;
  alignas(64) int8_t bytes[kPanelGroups<Type>][kPlanes<Type>][kBlockBytes];
  Product products[2][2];  // Of the two sets of tiles.
  Head heads[kTurns][kPanelGroups<Type>];
  alignas(64) int16_t sums_of_32[kTurns][kTileRows][8];
};

// Which bytes of a 32-bit word become its bytes, for all words of 16 bytes.
constexpr int kZero = 0x80;
constexpr ByteTable bytes_of_words(int b0, int b1, int b2, int b3) {
  ByteTable table{};
  const int from[4] = {b0, b1, b2, b3};
  for (int i = 0; i < 16; ++i)
    table.bytes[i] = static_cast<uint8_t>(from[i % 4] == kZero ? kZero : i / 4 * 4 + from[i % 4]);
  return table;
}
constexpr ByteTable kEven = bytes_of_words(0, kZero, 0, kZero), kOdd = bytes_of_words(kZero, 0, kZero, 0);
constexpr ByteTable kHalf = bytes_of_words(0, 1, 0, 1);
constexpr ByteTable kTimes256 = bytes_of_words(kZero, 0, 1, 2);
constexpr ByteTable kNext = bytes_of_words(1, kZero, 3, kZero), kBefore = bytes_of_words(kZero, 0, kZero, 2);

// A sub-scale (32-bit integers of at most a byte) as the products of bytes want it.
template <class Type>
struct Factor {
  Ints even, odd;  // In the even and in the odd bytes, zero in the others.
  Ints offset;     // What Type::kOffset adds to a product, in every 16 bits.

  STOKER_INLINE explicit Factor(Ints scale)
      : even(look_up(scale, table_of(kEven.bytes))), odd(look_up(scale, table_of(kOdd.bytes))) {
    constexpr int kBits = Type::kOffset == 0 ? 0 : __builtin_ctz(Type::kOffset);
    offset = bits_up(look_up(scale, table_of(kHalf.bytes)), kBits);
  }
  STOKER_INLINE Ints product(Ints v, Ints at) const {
    const Ints raised = _mm512_maddubs_epi16(v, at);
    return Type::kOffset == 0 ? raised : _mm512_sub_epi16(raised, offset);
  }
};

// The low and the high bytes of products of the even and of the odd bytes, in the places of the weights.
STOKER_INLINE Ints low_bytes(Ints even, Ints odd) {
  return _mm512_mask_shuffle_epi8(even, 0xaaaaaaaaaaaaaaaa, odd, table_of(kBefore.bytes));
}
STOKER_INLINE Ints high_bytes(Ints even, Ints odd) {
  return _mm512_mask_shuffle_epi8(odd, 0x5555555555555555, even, table_of(kNext.bytes));
}

template <class Type>
STOKER_INLINE void expand(const uint8_t* lines, const uint8_t* header, int8_t (&out)[kPlanes<Type>][kBlockBytes],
                          Head& head) {
  store(head.d.lanes, Type::scale(lines, header));
  if constexpr (Type::kHasMin) {
    store(head.dmin.lanes, Type::min(lines));
    Ints mins[kPairs<Type>];
    pair_up<Type>(
        [&](int j) __attribute__((always_inline)) { return Type::sub_min(lines, j); }, mins);
    STOKER_UNROLL for (int p = 0; p < kPairs<Type>; ++p) store(static_cast<void*>(head.mins[p].lanes), mins[p]);
  }
  alignas(64) int32_t scales[Type::kSubs][16];
  STOKER_UNROLL for (int j = 0; j < Type::kSubs; ++j) {
    const Ints scale = Type::sub_scale(lines, j);
    store(scales[j], kBytes<Type> == Bytes::kOneNegated ? _mm512_sub_epi32(ints(0), scale) : scale);
  }
  constexpr int kSubLines = 64 / Type::kSubs;
  STOKER_UNROLL for (int part = 0; part < 8 / Type::kPeriod; ++part) {
    STOKER_UNROLL for (int c = 0; c < Type::kPeriod; ++c) {
      Ints v[8];
      Type::decode(lines, part, c, v);
      const int first = 8 * (part * Type::kPeriod + c);  // Line of 4 weights of all rows.
      STOKER_UNROLL for (int sub = 0; sub < 8 / kSubLines; ++sub) {
        const Factor<Type> factor(load(scales[first / kSubLines + sub]));
        STOKER_UNROLL for (int i = sub * kSubLines; i < (sub + 1) * kSubLines; ++i) {
          const Ints even = factor.product(v[i], factor.even), odd = factor.product(v[i], factor.odd);
          store(out[0] + (first + i) * kLineBytes, low_bytes(even, odd));
          if constexpr (kPlanes<Type> == 2) store(out[1] + (first + i) * kLineBytes, high_bytes(even, odd));
        }
      }
    }
  }
}

// Rows [begin, end) of a unit: acc = fma(da, t, acc), t as docs/kernels.md has it.
template <class Type>
STOKER_INLINE void scale_rows(const Unit& u, const Product& low, const Product& high, int begin, int end) {
  const Floats d = load_floats(u.head->d.lanes);
  [[maybe_unused]] Ints mins[kPairs<Type>];
  if constexpr (Type::kHasMin) {
    STOKER_UNROLL for (int p = 0; p < kPairs<Type>; ++p) mins[p] = load(u.head->mins[p].lanes);
  }
  STOKER_UNROLL for (int row = begin; row < end; ++row) {
    Ints total = load(low.sums[row]);
    if constexpr (kPlanes<Type> == 2) total = add(total, look_up(load(high.sums[row]), table_of(kTimes256.bytes)));
    if constexpr (kBytes<Type> == Bytes::kOneNegated) total = _mm512_sub_epi32(ints(0), total);
    Floats t;
    if constexpr (Type::kHasMin) {
      Ints m = ints(0);
      STOKER_UNROLL for (int p = 0; p < kPairs<Type>; ++p) {
        m = dot2(m, mins[p], word_of(u.sums + row * Type::kSubs + 2 * p));
      }
      t = fma_minus(d, to_floats(total), mul(load_floats(u.head->dmin.lanes), to_floats(m)));
    } else {
      t = mul(d, to_floats(total));
    }
    float* y = u.y + row * 16;
    store(y, fma(floats(u.da[row]), t, load_floats(y)));
  }
}

template <bool kUnsigned, int kC, int kA, int kB>
STOKER_INLINE void add_product() {
  if constexpr (kUnsigned) {
    tile_dpbsud<kC, kA, kB>();
  } else {
    tile_dpbssd<kC, kA, kB>();
  }
}

// kFull: all tiles have 16 rows.
template <class Type, bool kFull>
class Pass {
 public:
  STOKER_INLINE Pass(const MatmulArgs& args, int64_t group, int n_groups, const RowTiles& tiles)
      : args_(args),
        x_(*args.x),
        z_(*reinterpret_cast<Scratch<Type>*>(args.scratch)),
        group_(group),
        n_groups_(n_groups),
        n_units_((n_groups + kUnitGroups - 1) / kUnitGroups),
        tiles_(tiles) {
    static_assert(sizeof(Scratch<Type>) <= kMatmulScratchBytes);
  }

  STOKER_INLINE void run() {
    z_.sums.clear(n_groups_, tiles_);
    for (s_ = 0; s_ < args_.k / 256; ++s_) {
      turn_ = next_turn(turn_);
      for (int g = 0; g < n_groups_; ++g) expand<Type>(lines(g, s_), header(g), z_.bytes[g], z_.heads[turn_][g]);
      const bool last = (s_ + 1) * 256 == args_.k;
      ahead_ = {last ? lines(n_groups_, 0) : lines(0, s_ + 1), args_.group_bytes, n_groups_, Type::kLines,
                Type::kLines / tiles_.count() + 1};
      for (int64_t tile = 0; tile < tiles_.count(); ++tile) row_tile(tile);
    }
    if (n_ % 2 == 0) {
      drain<0, 1>();
    } else {
      drain<1, 0>();
    }
    z_.sums.write(args_, group_, n_groups_, tiles_);
  }

 private:
  static constexpr bool kTwoPlanes = kPlanes<Type> == 2;
  static constexpr int kUnitGroups = kTwoPlanes ? 1 : 2;  // That a set of tiles serves.

  // Blocks 2 i and 2 i + 1 have their headers before them both, in one line.
  STOKER_INLINE const uint8_t* run_of(int g, int64_t s) const {
    const int64_t lines_before = s / 2 * (2 * Type::kLines + (Type::kHeader != 0));
    return reinterpret_cast<const uint8_t*>(args_.w) + (group_ + g) * args_.group_bytes + lines_before * kLineBytes;
  }
  STOKER_INLINE const uint8_t* lines(int g, int64_t s) const {
    return run_of(g, s) + (s % 2 * Type::kLines + (Type::kHeader != 0)) * kLineBytes;
  }
  STOKER_INLINE const uint8_t* header(int g) const { return run_of(g, s_) + s_ % 2 * Type::kHeader; }

  STOKER_INLINE int64_t at(int64_t tile) const { return s_ * x_.n + tiles_.row(tile); }

  STOKER_INLINE void row_tile(int64_t tile) {
    ahead_.step();
    if constexpr (Type::kHasMin && Type::kSubs == 8) {
      pairs_turn_ = next_turn(pairs_turn_);
      add_pairs(tile);
    }
    for (int i = 0; i < n_units_; ++i) {
      if (n_++ % 2 == 0) {
        unit<0>(tile, i);
      } else {
        unit<1>(tile, i);
      }
    }
  }

  // Sums over 32 activations from those over 16.
  STOKER_INLINE void add_pairs(int64_t tile) {
    const int16_t* from = x_.sums256 + at(tile) * 16;
    for (int i = 0; i < tiles_.rows(); ++i) add_neighbours(from + i * 16, z_.sums_of_32[pairs_turn_][i]);
  }

  // A tile of rows times both planes of a group, or times two groups (the last one perhaps times itself).
  template <int kSet>
  STOKER_INLINE void unit(int64_t tile, int i) {
    constexpr int kC = 2 * kSet, kOther = 2 - kC;
    const int8_t* x = x_.q256 + at(tile) * kActivations;
    const int8_t* next = x + kTileRows * kActivations + i % 2 * (kBlockBytes / 2);  // The other half by the next unit.
    const int second = 2 * i + 1 < n_groups_ ? 2 * i + 1 : 2 * i;
    const int8_t* w0 = kTwoPlanes ? z_.bytes[i][0] : z_.bytes[2 * i][0];
    const int8_t* w1 = kTwoPlanes ? z_.bytes[i][kPlanes<Type> - 1] : z_.bytes[second][0];
    tile_zero<kC>();
    tile_zero<kC + 1>();
    STOKER_UNROLL for (int step = 0; step < kSteps; ++step) {
      tile_load<4>(x + step * 64, kActivations);
      tile_load<6>(w0 + step * kStepBytes, kLineBytes);
      add_product<kTwoPlanes, kC, 4, 6>();
      tile_load<7>(w1 + step * kStepBytes, kLineBytes);
      tile_dpbssd<kC + 1, 4, 7>();
      if (step == 0) tile_store<kOther>(z_.products[1 - kSet][0].sums, kLineBytes);
      if (step == 1) tile_store<kOther + 1>(z_.products[1 - kSet][1].sums, kLineBytes);
      if constexpr (kFull) prefetch_near<8>(next + step * 8 * kLineBytes);
      scale_quarter<kSet>(step);
    }
    if constexpr (kTwoPlanes) {
      units_[kSet][0] = unit_of(tile, i);
    } else {
      units_[kSet][0] = unit_of(tile, 2 * i);
      units_[kSet][1] = second == 2 * i ? Unit{} : unit_of(tile, second);
    }
  }

  STOKER_INLINE Unit unit_of(int64_t tile, int g) {
    const int16_t* sums = Type::kSubs == 8 ? z_.sums_of_32[pairs_turn_][0] : x_.sums256 + at(tile) * 16;
    return {&z_.heads[turn_][g], x_.d256 + at(tile), sums, z_.sums.of(g, tile)};
  }

  // Of what the set's tiles were before this unit.
  template <int kSet>
  STOKER_INLINE void scale_quarter(int quarter) {
    const Product(&p)[2] = z_.products[kSet];
    STOKER_UNROLL for (int i = 0; i < kUnitGroups; ++i) {
      const Unit& u = units_[kSet][i];
      if (u.y == nullptr) continue;
      if constexpr (kFull) {
        scale_rows<Type>(u, p[i], p[1], 4 * quarter, 4 * quarter + 4);
      } else {
        for (int row = 4 * quarter; row < 4 * quarter + 4 && row < tiles_.rows(); ++row) {
          scale_rows<Type>(u, p[i], p[1], row, row + 1);
        }
      }
    }
  }
  template <int kSet>
  STOKER_INLINE void scale_all() {
    for (int quarter = 0; quarter < 4; ++quarter) scale_quarter<kSet>(quarter);
  }

  template <int kFirst, int kLast>
  STOKER_INLINE void drain() {
    scale_all<kFirst>();
    tile_store<2 * kLast>(z_.products[kLast][0].sums, kLineBytes);
    tile_store<2 * kLast + 1>(z_.products[kLast][1].sums, kLineBytes);
    scale_all<kLast>();
  }

  const MatmulArgs& args_;
  const Activations& x_;
  Scratch<Type>& z_;
  const int64_t group_;
  const int n_groups_, n_units_;
  const RowTiles tiles_;
  int64_t s_ = 0;
  int64_t n_ = 0;  // Units so far.
  int turn_ = 0, pairs_turn_ = 0;
  Unit units_[2][2];  // What the products of a set, stored or still in tiles, are.
  Ahead ahead_;
};

template <class Type, bool kFull>
void multiply(const MatmulArgs& args) noexcept {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.rows[i] = 16, config.row_bytes[i] = 64;
  run_panels<Pass, Type, kFull, kPanelGroups<Type>>(args, config);
}

template <class Type, const MatmulKernels& kOther>
void few_rows(const MatmulArgs& args) noexcept {
  if (args.row_end - args.row_begin < kLeastRows) return kOther.few(args);
  multiply<Type, false>(args);
}
template <class Type, const MatmulKernels& kOther>
void many_rows(const MatmulArgs& args) noexcept {
  if (args.row_end - args.row_begin < kTileRows) return few_rows<Type, kOther>(args);
  multiply<Type, true>(args);
}

}  // namespace

const TileKernels kQ2K = {few_rows<Q2K, avx512::kMatmulQ2K>, many_rows<Q2K, avx512::kMatmulQ2K>};
const TileKernels kQ3K = {few_rows<Q3K, avx512::kMatmulQ3K>, many_rows<Q3K, avx512::kMatmulQ3K>};
const TileKernels kQ4K = {few_rows<Q4K, avx512::kMatmulQ4K>, many_rows<Q4K, avx512::kMatmulQ4K>};
const TileKernels kQ5K = {few_rows<Q5K, avx512::kMatmulQ5K>, many_rows<Q5K, avx512::kMatmulQ5K>};
const TileKernels kQ6K = {few_rows<Q6K, avx512::kMatmulQ6K>, many_rows<Q6K, avx512::kMatmulQ6K>};
const TileKernels kIq4Xs = {few_rows<Iq4Xs, avx512::kMatmulIq4Xs>, many_rows<Iq4Xs, avx512::kMatmulIq4Xs>};

}  // namespace stoker::kernels::amx
