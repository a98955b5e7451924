// Many rows of the 32-blocks: the sums of kernels/vec/matmul_32.inc.h with SMMLA.
#include "kernels/neon/matmul_types.h"
#include "kernels/neon_i8mm/matmul_types.h"
#include "kernels/neon_i8mm/pairs.h"

namespace stoker::kernels::neon_i8mm {
namespace {

#include "kernels/vec/matmul_decode.inc.h"
//
#include "kernels/vec/matmul_types_32.inc.h"

// The activations of a super-block.
struct Block32 {
  PairedBytes q;
  PairedNumbers<8, float> scales, sums;  // The sums are for the minimum.
  PairedNumbers<8, int32_t> starts;      // -kOffset * (sum of the activations): what the integer sums start from.
};

template <class Type>
struct Tile32 {
  static STOKER_INLINE void read(const Activations& x, int64_t at, Block32& block) {
    block.q.read(x.q32 + at * 256);
    block.scales.read(x.d32 + at * 8, [](const float* d, int i) { return d[i]; });
    const int16_t* sums = x.sums32 + at * 8;
    if constexpr (Type::kHasMin) {
      block.sums.read(sums, [](const int16_t* s, int i) { return static_cast<float>(s[i]); });
    }
    if constexpr (Type::kOffset != 0) {
      block.starts.read(sums, [](const int16_t* s, int i) { return -Type::kOffset * s[i]; });
    }
  }

  // Adds block j of the super-block for the four rows at `lines`.
  static STOKER_INLINE void add(const uint8_t* lines, const uint8_t* header, const Block32& x, int j,
                                Floats (&sums)[kRowPairs][2]) {
    Ints v[8];
    Type::decode(lines, v);
    const PairedWeights w(v);
    const Floats d = Type::scale(lines, header);
    STOKER_ROLL for (int pair = 0; pair < kRowPairs; ++pair) {
      Ints dots[2];
      dots[0] = dots[1] = Type::kOffset == 0 ? ints(0) : twice(x.starts.at[j][pair]);
      add_products<4>(w, 0, x.q.at[j][pair], dots);
      const Floats da = twice(x.scales.at[j][pair]);
      STOKER_UNROLL for (int half = 0; half < 2; ++half) {
        const Floats dot = to_floats(dots[half]);
        if constexpr (Type::kHasMin) {
          const Floats offset = neon::mul(spread(Type::min(lines), half), twice(x.sums.at[j][pair]));
          sums[pair][half] = fma(da, fma(spread(d, half), dot, offset), sums[pair][half]);
        } else {
          sums[pair][half] = fma(neon::mul(spread(d, half), da), dot, sums[pair][half]);
        }
      }
    }
  }

  static void run(const MatmulArgs& args, int64_t group, int64_t row) noexcept {
    const auto* lines = reinterpret_cast<const uint8_t*>(args.w) + group * args.group_bytes;
    const int64_t n_blocks = args.k / 32;
    Sums sums;
    Block32 x;
    for (int64_t s = 0; s * 8 < n_blocks; ++s) {
      // The last super-block, and run of the weights, may be shorter than 8 blocks.
      const int here = n_blocks - 8 * s < 8 ? static_cast<int>(n_blocks - 8 * s) : 8;
      read(*args.x, s * args.x->n + row, x);
      const uint8_t* header = lines;
      lines += (here * Type::kHeader + kLineBytes - 1) / kLineBytes * kLineBytes;
      for (int j = 0; j < here; ++j, lines += Type::kLines * kLineBytes, header += Type::kHeader) {
        for (int part = 0; part < kParts; ++part) {
          add(lines + part * kLineBytes / kParts, header + part * Type::kHeader / kParts, x, j, sums.at[part]);
        }
      }
    }
    sums.store_rows(args, group, row);
  }
};

}  // namespace

const MatmulFn kManyQ4_0 = many_rows<Tile32<Q4_0>, &neon::kMatmulQ4_0>;
const MatmulFn kManyQ4_1 = many_rows<Tile32<Q4_1>, &neon::kMatmulQ4_1>;
const MatmulFn kManyQ5_0 = many_rows<Tile32<Q5_0>, &neon::kMatmulQ5_0>;
const MatmulFn kManyQ5_1 = many_rows<Tile32<Q5_1>, &neon::kMatmulQ5_1>;
const MatmulFn kManyQ8_0 = many_rows<Tile32<Q8_0>, &neon::kMatmulQ8_0>;
const MatmulFn kManyIq4Nl = many_rows<Tile32<Iq4Nl>, &neon::kMatmulIq4Nl>;
const MatmulFn kManyMxfp4 = many_rows<Tile32<Mxfp4>, &neon::kMatmulMxfp4>;

}  // namespace stoker::kernels::neon_i8mm
