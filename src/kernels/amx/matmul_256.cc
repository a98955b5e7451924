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

// What a block of a group has besides the integers.
struct Head {
  Line d, dmin;
  Line mins[8];  // Pairs of 16-bit integers.
};

// 16 rows of activations times a group, yet to be scaled.
struct Unit {
  const Product* low;
  const Product* high;
  const Head* head;
  const float* da;
  const int16_t* sums;  // Of the activations, kSubs per row.
  float* y;
};

constexpr int kMostUnits = 4;
struct Job {
  Unit units[kMostUnits];
  int n = 0;
};

struct Scratch {
  Sums sums;
  alignas(64) int8_t bytes[kPanelGroups][2][kBlockBytes];
  Head heads[2][kPanelGroups];  // The last step of a super-block is scaled during the first of the next.
  Product products[2][4];       // Likewise from step to step.
  alignas(64) int16_t sums_of_32[2][2 * kTileRows][8];
};
static_assert(sizeof(Scratch) <= kMatmulScratchBytes);

// Sub-scale times level for the even and the odd bytes of every 16 bits.
template <class Type>
STOKER_INLINE void scale_bytes(Ints v, Ints scale, Ints& even, Ints& odd) {
  const Ints twice = either(both(scale, ints(0xffff)), shift_left(scale, 16));
  if constexpr (Type::kOffset == 0) {
    even = _mm512_maddubs_epi16(v, twice);
    odd = _mm512_maddubs_epi16(v, bits_up(twice, 8));
  } else {
    const Ints w = with_sign<Type>(v);
    even = _mm512_mullo_epi16(_mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8), twice);
    odd = _mm512_mullo_epi16(_mm512_srai_epi16(w, 8), twice);
  }
}

// The low bytes and the high bytes of even and odd, in the places of the weights.
STOKER_INLINE Ints low_bytes(Ints even, Ints odd) { return either(both(even, ints(0x00ff00ff)), bits_up(odd, 8)); }
STOKER_INLINE Ints high_bytes(Ints even, Ints odd) {
  return either(bits_down(even, 8), both(odd, ints(static_cast<int>(0xff00ff00))));
}

template <class Type>
STOKER_INLINE void expand(const uint8_t* lines, const uint8_t* header, int8_t (&out)[2][kBlockBytes], Head& head) {
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
  for (int part = 0; part < 8 / Type::kPeriod; ++part) {
    STOKER_UNROLL for (int c = 0; c < Type::kPeriod; ++c) {
      Ints v[8];
      Type::decode(lines, part, c, v);
      const int first = 8 * (part * Type::kPeriod + c);  // Line of 4 weights of all rows.
      STOKER_UNROLL for (int i = 0; i < 8; ++i) {
        Ints even, odd;
        scale_bytes<Type>(v[i], load(scales[(first + i) * Type::kSubs / 64]), even, odd);
        store(out[0] + (first + i) * kLineBytes, low_bytes(even, odd));
        if constexpr (kBytes<Type> == Bytes::kTwo) store(out[1] + (first + i) * kLineBytes, high_bytes(even, odd));
      }
    }
  }
}

// Half a unit, 8 rows: acc = fma(da, t, acc), t as docs/kernels.md has it.
template <class Type>
STOKER_INLINE void scale_half(const Unit& u, int half) {
  const Floats d = load_floats(u.head->d.lanes);
  [[maybe_unused]] Ints mins[kPairs<Type>];
  if constexpr (Type::kHasMin) {
    STOKER_UNROLL for (int p = 0; p < kPairs<Type>; ++p) mins[p] = load(u.head->mins[p].lanes);
  }
  STOKER_UNROLL for (int i = 0; i < kTileRows / 2; ++i) {
    const int row = half * (kTileRows / 2) + i;
    Ints total = load(u.low->sums[row]);
    if constexpr (kBytes<Type> == Bytes::kTwo) total = add(total, shift_left(load(u.high->sums[row]), 8));
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

// Its share, of kSteps, of the work that the step before left.
template <class Type>
STOKER_INLINE void scale_share(const Job& job, int step) {
  constexpr int kHalves = kBytes<Type> == Bytes::kTwo ? 1 : 2;
  STOKER_UNROLL for (int i = 0; i < kHalves; ++i) {
    const int half = step * kHalves + i;
    if (half / 2 < job.n) scale_half<Type>(job.units[half / 2], half % 2);
  }
}

// Two tiles of weights: the low and the high bytes of a group, or those of two groups.
struct Operands {
  const int8_t* rows[2];
  const int8_t* weights[2];
  const int8_t* next;  // Rows to fetch meanwhile: those of the next step.
};

template <bool kUnsigned, int kC, int kA, int kB>
STOKER_INLINE void add_product() {
  if constexpr (kUnsigned) {
    tile_dpbsud<kC, kA, kB>();
  } else {
    tile_dpbssd<kC, kA, kB>();
  }
}

// products[2 a + b] = tile a of the rows times b of the weights, while `before` is scaled.
template <class Type, int kRows, int kWeights>
STOKER_INLINE void multiply(const Operands& x, Product (&products)[4], const Job& before) {
  constexpr bool kUnsigned = kBytes<Type> == Bytes::kTwo;
  constexpr int kFetch = kUnsigned ? 16 : 32;  // Lines; each of two groups fetches half of the next rows, or both all.
  tile_zero<0>();
  if constexpr (kWeights == 2) tile_zero<1>();
  if constexpr (kRows == 2) tile_zero<2>();
  if constexpr (kRows == 2 && kWeights == 2) tile_zero<3>();
  STOKER_UNROLL for (int step = 0; step < kSteps; ++step) {
    tile_load<6>(x.weights[0] + step * kStepBytes, kLineBytes);
    tile_load<4>(x.rows[0] + step * 64, kActivations);
    add_product<kUnsigned, 0, 4, 6>();
    if constexpr (kRows == 2) {
      tile_load<5>(x.rows[1] + step * 64, kActivations);
      add_product<kUnsigned, 2, 5, 6>();
    }
    if constexpr (kWeights == 2) {
      tile_load<7>(x.weights[1] + step * kStepBytes, kLineBytes);
      tile_dpbssd<1, 4, 7>();
      if constexpr (kRows == 2) tile_dpbssd<3, 5, 7>();
    }
    prefetch_near<kFetch>(x.next + step * kFetch * kLineBytes);
    scale_share<Type>(before, step);
  }
  tile_store<0>(products[0].sums, kLineBytes);
  if constexpr (kWeights == 2) tile_store<1>(products[1].sums, kLineBytes);
  if constexpr (kRows == 2) tile_store<2>(products[2].sums, kLineBytes);
  if constexpr (kRows == 2 && kWeights == 2) tile_store<3>(products[3].sums, kLineBytes);
}

template <class Type>
class Pass {
 public:
  STOKER_INLINE Pass(const MatmulArgs& args, int64_t group, int n_groups, const RowTiles& tiles)
      : args_(args),
        x_(*args.x),
        z_(*reinterpret_cast<Scratch*>(args.scratch)),
        group_(group),
        n_groups_(n_groups),
        tiles_(tiles) {}

  STOKER_INLINE void run() {
    z_.sums.clear(n_groups_, tiles_);
    for (s_ = 0; s_ < args_.k / 256; ++s_) {
      for (int g = 0; g < n_groups_; ++g) expand<Type>(lines(g, s_), header(g), z_.bytes[g], z_.heads[s_ % 2][g]);
      int64_t tile = 0;
      ahead_ = {{lines(0, s_ + 1), lines(n_groups_ - 1, s_ + 1)},
                n_groups_,
                Type::kLines,
                Type::kLines * 2 / tiles_.count() + 1};
      for (; tile + 2 <= tiles_.count(); tile += 2) step<2>(tile);
      if (tile < tiles_.count()) step<1>(tile);
    }
    for (int step = 0; step < kSteps; ++step) scale_share<Type>(jobs_[n_ % 2], step);
    z_.sums.write(args_, group_, n_groups_, tiles_);
  }

 private:
  // Blocks 2 i and 2 i + 1 have their headers before them both, in one line.
  STOKER_INLINE const uint8_t* run_of(int g, int64_t s) const {
    const int64_t lines_before = s / 2 * (2 * Type::kLines + (Type::kHeader != 0));
    return reinterpret_cast<const uint8_t*>(args_.w) + (group_ + g) * args_.group_bytes + lines_before * kLineBytes;
  }
  STOKER_INLINE const uint8_t* lines(int g, int64_t s) const {
    return run_of(g, s) + (s % 2 * Type::kLines + (Type::kHeader != 0)) * kLineBytes;
  }
  STOKER_INLINE const uint8_t* header(int g) const { return run_of(g, s_) + s_ % 2 * Type::kHeader; }

  template <int kRows>
  STOKER_INLINE void step(int64_t tile) {
    ahead_.step();
    ++pairs_;
    if constexpr (Type::kHasMin && Type::kSubs == 8) add_pairs<kRows>(tile);
    if constexpr (kBytes<Type> == Bytes::kTwo) {
      for (int g = 0; g < n_groups_; ++g) products<kRows, 2>(tile, g, {z_.bytes[g][0], z_.bytes[g][1]});
    } else if (n_groups_ == 2) {
      products<kRows, 2>(tile, 0, {z_.bytes[0][0], z_.bytes[1][0]});
    } else {
      products<kRows, 1>(tile, 0, {z_.bytes[0][0], nullptr});
    }
  }

  struct Weights {
    const int8_t* tiles[2];
  };

  template <int kRows, int kWeights>
  STOKER_INLINE void products(int64_t tile, int g, const Weights& weights) {
    const Job& before = jobs_[n_ % 2];
    Product(&out)[4] = z_.products[++n_ % 2];
    const int8_t* next = rows(tile) + 2 * kTileRows * kActivations + g * kBlockBytes;
    const Operands operands{{rows(tile), rows(tile + kRows - 1)}, {weights.tiles[0], weights.tiles[1]}, next};
    multiply<Type, kRows, kWeights>(operands, out, before);
    Job& job = jobs_[n_ % 2];
    job.n = 0;
    STOKER_UNROLL for (int a = 0; a < kRows; ++a) {
      if constexpr (kBytes<Type> == Bytes::kTwo) {
        job.units[job.n++] = unit(tile, a, g, &out[2 * a], &out[2 * a + 1]);
      } else {
        STOKER_UNROLL for (int b = 0; b < kWeights; ++b) job.units[job.n++] =
            unit(tile, a, b, &out[2 * a + b], nullptr);
      }
    }
  }

  STOKER_INLINE int64_t at(int64_t tile) const { return s_ * x_.n + tiles_.row(tile); }
  STOKER_INLINE const int8_t* rows(int64_t tile) const { return x_.q256 + at(tile) * kActivations; }

  STOKER_INLINE Unit unit(int64_t tile, int a, int g, const Product* low, const Product* high) {
    const int16_t* sums = Type::kSubs == 8 ? z_.sums_of_32[pairs_ % 2][a * kTileRows] : x_.sums256 + at(tile + a) * 16;
    return {low, high, &z_.heads[s_ % 2][g], x_.d256 + at(tile + a), sums, z_.sums.of(g, tile + a)};
  }

  // Sums over 32 activations from those over 16.
  template <int kRows>
  STOKER_INLINE void add_pairs(int64_t tile) {
    for (int a = 0; a < kRows; ++a) {
      const int16_t* from = x_.sums256 + at(tile + a) * 16;
      STOKER_UNROLL for (int i = 0; i < kTileRows; ++i) {
        add_neighbours(from + i * 16, z_.sums_of_32[pairs_ % 2][a * kTileRows + i]);
      }
    }
  }

  const MatmulArgs& args_;
  const Activations& x_;
  Scratch& z_;
  const int64_t group_;
  const int n_groups_;
  const RowTiles tiles_;
  int64_t s_ = 0;
  int64_t pairs_ = 0;  // Of tiles, so far.
  int64_t n_ = 0;      // Steps so far.
  Job jobs_[2];        // What step n left is jobs_[n % 2].
  Ahead ahead_{};
};

template <class Type, const MatmulKernels& kFew>
void many_rows(const MatmulArgs& args) noexcept {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.rows[i] = 16, config.row_bytes[i] = 64;
  for_panels(
      args, config, kFew.many, [&](int64_t group, int n_groups, const RowTiles& tiles) __attribute__((always_inline)) {
        Pass<Type>(args, group, n_groups, tiles).run();
      });
}

}  // namespace

const MatmulFn kManyQ2K = many_rows<Q2K, avx512::kMatmulQ2K>;
const MatmulFn kManyQ3K = many_rows<Q3K, avx512::kMatmulQ3K>;
const MatmulFn kManyQ4K = many_rows<Q4K, avx512::kMatmulQ4K>;
const MatmulFn kManyQ5K = many_rows<Q5K, avx512::kMatmulQ5K>;
const MatmulFn kManyQ6K = many_rows<Q6K, avx512::kMatmulQ6K>;
const MatmulFn kManyIq4Xs = many_rows<Iq4Xs, avx512::kMatmulIq4Xs>;

}  // namespace stoker::kernels::amx
