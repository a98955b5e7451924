// Many rows times 256-blocks, two groups of the matrix side by side: 32 matrix rows times 8 rows of activations share
// every broadcast and keep 16 sums of integers in registers. A block of both groups is decoded once for 128 rows and
// stays in the first-level cache meanwhile; the float sums of the 128 rows wait beside it.
#pragma once

namespace stoker::kernels::avx512 {
namespace {

constexpr int kPairRows = 8;
constexpr int kRunRows = 128;
// With fewer rows, decoding a block takes longer than tiles do that decode it in registers every time.
template <class Type>
constexpr int kFewestPairedRows = 32;
template <>
inline constexpr int kFewestPairedRows<Q4K> = 64;
template <>
inline constexpr int kFewestPairedRows<Iq4Xs> = 64;

// A block of two groups.
template <class Type>
struct DecodedPair {
  static constexpr int kMins = Type::kHasMin ? kPairs<Type> : 1;
  Ints words[64][2];
  Ints scales[Type::kSubs][2];
  Ints mins[kMins][2];  // Those of two neighbouring sub-blocks in the halves of a lane.
  Floats d[2], dmin[2];
};

template <class Type>
struct PairScratch {
  DecodedPair<Type> block;
  float sums[kRunRows][2][16];
};

template <class Type>
STOKER_INLINE void decode_group(const uint8_t* lines, const uint8_t* header, int which, DecodedPair<Type>& to) {
  for (int part = 0; part < 8 / Type::kPeriod; ++part) {
    STOKER_UNROLL for (int c = 0; c < Type::kPeriod; ++c) {
      Ints v[8];
      Type::decode(lines, part, c, v);
      STOKER_UNROLL for (int i = 0; i < 8; ++i) to.words[8 * (part * Type::kPeriod + c) + i][which] = v[i];
    }
  }
  STOKER_UNROLL for (int j = 0; j < Type::kSubs; ++j) to.scales[j][which] = Type::sub_scale(lines, j);
  to.d[which] = Type::scale(lines, header);
  if constexpr (Type::kHasMin) {
    Ints mins[kPairs<Type>];
    pair_up<Type>([&](int j) { return Type::sub_min(lines, j); }, mins);
    STOKER_UNROLL for (int p = 0; p < kPairs<Type>; ++p) to.mins[p][which] = mins[p];
    to.dmin[which] = Type::min(lines);
  }
}

// Adds sub-scale times dot for four rows of activations from `first` on; `words` and `q` are those of the sub-block.
template <class Type, int first>
STOKER_INLINE void add_dots_of_pair(const Ints (*words)[2], const Ints (&scales)[2], const int8_t* q,
                                    const Ints (&starts)[4], Ints (&totals)[2][kPairRows]) {
  Ints dots[2][4];
  STOKER_UNROLL for (int t = 0; t < 4; ++t) dots[0][t] = dots[1][t] = starts[t];
  STOKER_UNROLL for (int i = 0; i < 64 / Type::kSubs; ++i) {
    STOKER_UNROLL for (int t = 0; t < 4; ++t) {
      const Ints x = word_of(q + (first + t) * 256 + 4 * i);
      STOKER_UNROLL for (int g = 0; g < 2; ++g) dots[g][t] = dot4(dots[g][t], words[i][g], x);
    }
  }
  STOKER_UNROLL for (int t = 0; t < 4; ++t) {
    STOKER_UNROLL for (int g = 0; g < 2; ++g) {
      totals[g][first + t] = add(totals[g][first + t], mul(dots[g][t], scales[g]));
    }
  }
}

// The integer sums of a block. Meanwhile what these rows have in the next one is fetched.
template <class Type>
STOKER_INLINE void totals_of_pair(const DecodedPair<Type>& w, const Block256& x, const int8_t* next,
                                  Ints (&totals)[2][kPairRows]) {
  constexpr int kWords = 64 / Type::kSubs, kBytes = kPairRows * 4 * kWords;
  STOKER_UNROLL for (int t = 0; t < kPairRows; ++t) totals[0][t] = totals[1][t] = ints(0);
  const Starts<Type, kPairRows> starts(x.sums);
  const Ints(*words)[2] = w.words;
  const int8_t* q = x.q;
  _Pragma("GCC unroll 1") for (int sub = 0; sub < Type::kSubs; ++sub) {
    STOKER_UNROLL for (int i = 0; i < kBytes; i += kLineBytes) prefetch(next + i);
    Ints from[2][4];
    STOKER_UNROLL for (int t = 0; t < kPairRows; ++t) from[t / 4][t % 4] = starts.of(t, sub);
    add_dots_of_pair<Type, 0>(words, w.scales[sub], q, from[0], totals);
    asm volatile("" : : : "memory");  // Or all weights of the sub-block stay in registers, and the totals do not.
    add_dots_of_pair<Type, 4>(words, w.scales[sub], q, from[1], totals);
    words += kWords;
    q += 4 * kWords;
    next += kBytes;
  }
}

// From sums of 16 activations of 8 rows to those of sub-blocks.
template <class Type>
STOKER_INLINE void sums_of_subs(const int16_t* sums, int16_t (&out)[kPairRows][Type::kSubs]) {
  if constexpr (Type::kSubs == 16) {
    __builtin_memcpy(out, sums, sizeof out);
  } else {
    STOKER_UNROLL for (int t = 0; t < kPairRows; t += 2) {
      const Ints twos = _mm512_madd_epi16(load(sums + 16 * t), _mm512_set1_epi16(1));
      _mm256_store_si256(reinterpret_cast<__m256i*>(out[t]), _mm512_cvtepi32_epi16(twos));
    }
  }
  asm volatile("" : : "r"(out) : "memory");  // Broadcasts from memory are cheaper than shuffles out of registers.
}

// As scale_totals_256.
template <class Type>
STOKER_INLINE void scale_pair(const DecodedPair<Type>& w, const Block256& x, const Ints (&totals)[2][kPairRows],
                              float (*sums)[2][16]) {
  alignas(64) int16_t of_subs[kPairRows][Type::kSubs];
  if constexpr (Type::kHasMin) sums_of_subs<Type>(x.sums, of_subs);
  STOKER_UNROLL for (int g = 0; g < 2; ++g) {
    const Floats d = w.d[g], dmin = w.dmin[g];
    Ints mins[DecodedPair<Type>::kMins];
    STOKER_UNROLL for (int p = 0; p < DecodedPair<Type>::kMins; ++p) mins[p] = w.mins[p][g];
    STOKER_UNROLL for (int t = 0; t < kPairRows; ++t) {
      Floats scaled;
      if constexpr (Type::kHasMin) {
        Ints m = ints(0);
        STOKER_UNROLL for (int p = 0; p < kPairs<Type>; ++p) m = dot2(m, mins[p], word_of(&of_subs[t][2 * p]));
        scaled = fma_minus(d, to_floats(totals[g][t]), mul(dmin, to_floats(m)));
      } else {
        scaled = mul(d, to_floats(totals[g][t]));
      }
      store(sums[t][g], fma(floats(x.scales[t]), scaled, load_floats(sums[t][g])));
    }
  }
}

// Rows [row, row + n) of a pair of groups, kPairRows <= n <= kRunRows. From memory: the pair is not in the second-level
// cache, and the next one is fetched meanwhile.
template <class Type>
void run_of_pair(const MatmulArgs& args, int64_t group, int64_t row, int64_t n, bool from_memory) noexcept {
  auto& scratch = *reinterpret_cast<PairScratch<Type>*>(args.scratch);
  const Activations& x = *args.x;
  const uint8_t* ahead = group_start(args, group + 2);
  const int64_t n_steps = (n + kPairRows - 1) / kPairRows;
  // The last step overlaps the one before if n is no multiple of kPairRows: the same sums twice, to the same bits.
  const auto row_of = [&](int64_t step) {
    return row + (kPairRows * (step + 1) < n ? kPairRows * step : n - kPairRows);
  };
  const int64_t block_lines = 2 * Type::kLines + (Type::kHeader != 0 ? 1 : 0);  // Two headers in every other block.
  const int64_t lines_per_step = (block_lines + n_steps - 1) / n_steps;
  for (int64_t t = 0; t < n_steps * kPairRows; ++t) {
    STOKER_UNROLL for (int g = 0; g < 2; ++g) store(scratch.sums[t][g], floats(0));
  }
  for_blocks_256<Type>(
      args, group, [&](const uint8_t* lines, const uint8_t* header, int64_t s) __attribute__((always_inline)) {
        decode_group<Type>(lines, header, 0, scratch.block);
        decode_group<Type>(lines + args.group_bytes, header + args.group_bytes, 1, scratch.block);
        for (int64_t step = 0; step < n_steps; ++step) {
          if (from_memory) {
            for (int64_t i = 0; i < lines_per_step; ++i, ahead += kLineBytes) prefetch(ahead);
          }
          const int64_t at = s * x.n + row_of(step);
          const Block256 block{x.q256 + at * 256, x.d256 + at, x.sums256 + at * 16};
          Ints totals[2][kPairRows];
          totals_of_pair<Type>(scratch.block, block, block.q + x.n * 256, totals);
          scale_pair<Type>(scratch.block, block, totals, scratch.sums + kPairRows * step);
        }
      });
  for (int64_t t = 0; t < n_steps * kPairRows; ++t) {
    float* y = args.y + (row_of(t / kPairRows) + t % kPairRows) * args.y_stride + group * 16;
    STOKER_UNROLL for (int g = 0; g < 2; ++g) store(y + 16 * g, load_floats(scratch.sums[t][g]));
  }
}

template <class Type>
void rows_of_pairs(const MatmulArgs& args, int64_t group_begin, int64_t group_end) noexcept {
  for (int64_t begin = args.row_begin; begin < args.row_end; begin += kRunRows) {
    const int64_t end = begin + kRunRows < args.row_end ? begin + kRunRows : args.row_end;
    const int64_t row = end - begin < kPairRows ? end - kPairRows : begin;
    for (int64_t g = group_begin; g < group_end; g += 2) {
      run_of_pair<Type>(args, g, row, end - row, begin == args.row_begin);
    }
  }
}

template <class Type>
void paired_rows(const MatmulArgs& args) noexcept {
  static_assert(sizeof(PairScratch<Type>) <= kMatmulScratchBytes && kFewestPairedRows<Type> >= kPairRows);
  if (args.row_end - args.row_begin < kFewestPairedRows<Type>) return any_rows<Family256<Type>>(args);
  const int64_t reuse = args.group_bytes < kReuseBytes / 2 ? kReuseBytes / args.group_bytes / 2 * 2 : 2;
  const int64_t pairs_end = args.group_end - (args.group_end - args.group_begin) % 2;
  for (int64_t g = args.group_begin; g < pairs_end; g += reuse) {
    rows_of_pairs<Type>(args, g, g + reuse < pairs_end ? g + reuse : pairs_end);
  }
  MatmulArgs rest = args;
  rest.group_begin = pairs_end;
  if (pairs_end < args.group_end) any_rows<Family256<Type>>(rest);
}

template <class Type>
constexpr MatmulKernels kernels_in_pairs() {
  return {one_row<Family256<Type>>, any_rows<Family256<Type>>, paired_rows<Type>};
}

}  // namespace
}  // namespace stoker::kernels::avx512
