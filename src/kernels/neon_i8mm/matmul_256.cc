// Many rows of the 256-blocks: the sums of kernels/vec/matmul_256.inc.h with SMMLA.
#include "kernels/neon/matmul_types.h"
#include "kernels/neon_i8mm/matmul_types.h"
#include "kernels/neon_i8mm/pairs.h"

namespace stoker::kernels::neon_i8mm {
namespace {

#include "kernels/vec/matmul_decode.inc.h"
//
#include "kernels/vec/matmul_types_256.inc.h"

// The activations of a block. The sums of the sub-blocks are what the minimums are multiplied with, or, times -kOffset,
// what the dots of the sub-blocks start from.
template <class Type>
struct Block256 {
  PairedBytes q;
  float scales[kRows];
  PairedNumbers<Type::kSubs, int32_t> sums;

  STOKER_INLINE void read(const Activations& x, int64_t at) {
    q.read(x.q256 + at * 256);
    __builtin_memcpy(scales, x.d256 + at, sizeof scales);
    if constexpr (Type::kHasMin || Type::kOffset != 0) {
      constexpr int kFactor = Type::kHasMin ? 1 : -Type::kOffset;
      int16_t of_subs[kRows][Type::kSubs];
      for (int row = 0; row < kRows; ++row) {
        const int16_t* from = x.sums256 + (at + row) * 16;
        if constexpr (Type::kSubs == 8) {
          add_neighbours(from, of_subs[row]);
        } else {
          __builtin_memcpy(of_subs[row], from, sizeof of_subs[row]);
        }
      }
      sums.read(of_subs[0], [](const int16_t* s, int i) { return kFactor * s[i]; });
    }
  }
};

// Of a part of the rows: numbers of every sub-block, both halves.
template <class Type>
struct Factors {
  Ints at[Type::kSubs][2];

  template <class F>
  STOKER_INLINE explicit Factors(F of) {
    STOKER_UNROLL for (int j = 0; j < Type::kSubs; ++j) {
      const Ints v = of(j);
      at[j][0] = spread(v, 0);
      at[j][1] = spread(v, 1);
    }
  }
};

template <class Type>
struct Tile256 {
  static constexpr int kBlockBytes = Type::kLines * kLineBytes;

  // totals = sum over the sub-blocks of scale * dot.
  static STOKER_INLINE void add_totals(const uint8_t* lines, const Block256<Type>& x, Ints (&totals)[kRowPairs][2]) {
    const Factors<Type> scales([&](int j) { return Type::sub_scale(lines, j); });
    constexpr int kSubsHere = Type::kSubs / 8, kSteps = 4 / kSubsHere;  // In 32 weights; of 8 in each.
    for (int p = 0; p < 8 / Type::kPeriod; ++p) {
      STOKER_UNROLL for (int c = 0; c < Type::kPeriod; ++c) {
        const int block = p * Type::kPeriod + c;
        Ints v[8];
        Type::decode(lines, p, c, v);
        const PairedWeights w(v);
        STOKER_ROLL for (int pair = 0; pair < kRowPairs; ++pair) {
          STOKER_UNROLL for (int i = 0; i < kSubsHere; ++i) {
            const int sub = block * kSubsHere + i;
            Ints dots[2];
            dots[0] = dots[1] = Type::kOffset == 0 ? ints(0) : twice(x.sums.at[sub][pair]);
            add_products<kSteps>(w, i * kSteps, x.q.at[block][pair], dots);
            STOKER_UNROLL for (int half = 0; half < 2; ++half) {
              totals[pair][half] = vmlaq_s32(totals[pair][half], dots[half], scales.at[sub][half]);
            }
          }
        }
      }
    }
  }

  // Minimums times the sums of the activations.
  static STOKER_INLINE void add_minimums(const uint8_t* lines, const Block256<Type>& x, Ints (&totals)[kRowPairs][2]) {
    const Factors<Type> mins([&](int j) { return Type::sub_min(lines, j); });
    STOKER_ROLL for (int pair = 0; pair < kRowPairs; ++pair) {
      STOKER_UNROLL for (int j = 0; j < Type::kSubs; ++j) {
        const Ints s = twice(x.sums.at[j][pair]);
        STOKER_UNROLL for (int half = 0; half < 2; ++half) {
          totals[pair][half] = vmlaq_s32(totals[pair][half], s, mins.at[j][half]);
        }
      }
    }
  }

  static STOKER_INLINE void add(const uint8_t* lines, const uint8_t* header, const Block256<Type>& x,
                                Floats (&sums)[kRowPairs][2]) {
    Ints totals[kRowPairs][2] = {}, minimums[kRowPairs][2] = {};
    add_totals(lines, x, totals);
    if constexpr (Type::kHasMin) add_minimums(lines, x, minimums);
    const Floats d = Type::scale(lines, header);
    STOKER_ROLL for (int pair = 0; pair < kRowPairs; ++pair) {
      const Floats da = twice(x.scales + 2 * pair);
      STOKER_UNROLL for (int half = 0; half < 2; ++half) {
        const Floats scale = spread(d, half), total = to_floats(totals[pair][half]);
        Floats t;
        if constexpr (Type::kHasMin) {
          const Floats m = to_floats(minimums[pair][half]);
          t = fma_minus(scale, total, neon::mul(spread(Type::min(lines), half), m));
        } else {
          t = neon::mul(scale, total);
        }
        sums[pair][half] = fma(da, t, sums[pair][half]);
      }
    }
  }

  static void run(const MatmulArgs& args, int64_t group, int64_t row) noexcept {
    const auto* lines = reinterpret_cast<const uint8_t*>(args.w) + group * args.group_bytes;
    const uint8_t* headers = lines;
    Sums sums;
    Block256<Type> x;
    for (int64_t s = 0; s < args.k / 256; ++s, lines += kBlockBytes) {
      x.read(*args.x, s * args.x->n + row);
      // Blocks 2 i and 2 i + 1 have their headers before them both, in one line.
      if (Type::kHeader != 0 && s % 2 == 0) {
        headers = lines;
        lines += kLineBytes;
      }
      for (int part = 0; part < kParts; ++part) {
        add(lines + part * kLineBytes / kParts, headers + (s % 2 * kParts + part) * Type::kHeader / kParts, x,
            sums.at[part]);
      }
    }
    sums.store_rows(args, group, row);
  }
};

}  // namespace

const MatmulFn kManyQ2K = many_rows<Tile256<Q2K>, &neon::kMatmulQ2K>;
const MatmulFn kManyQ3K = many_rows<Tile256<Q3K>, &neon::kMatmulQ3K>;
const MatmulFn kManyQ4K = many_rows<Tile256<Q4K>, &neon::kMatmulQ4K>;
const MatmulFn kManyQ5K = many_rows<Tile256<Q5K>, &neon::kMatmulQ5K>;
const MatmulFn kManyQ6K = many_rows<Tile256<Q6K>, &neon::kMatmulQ6K>;
const MatmulFn kManyIq4Xs = many_rows<Tile256<Iq4Xs>, &neon::kMatmulIq4Xs>;

}  // namespace stoker::kernels::neon_i8mm
