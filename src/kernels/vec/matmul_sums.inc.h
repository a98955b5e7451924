// Sums of activations times the sub-scales or minimums of a 256-block.

template <class Type>
constexpr int kPairs = Type::kSubs / 2;

// Factors of sub-blocks 2 p and 2 p + 1 in the low and the high half of every lane; factor(j) is that of sub-block j.
template <class Type, class F>
STOKER_INLINE void pair_up(F factor, Ints (&pairs)[kPairs<Type>]) {
  STOKER_UNROLL for (int p = 0; p < kPairs<Type>; ++p) pairs[p] = pair(factor(2 * p), factor(2 * p + 1));
}

// Sum of factor * (sum of the activations of the sub-block); `sums` has those of 16 activations each.
template <class Type>
STOKER_INLINE Ints weigh_sums(const Ints (&pairs)[kPairs<Type>], const int16_t* sums) {
  int16_t of_32[8];
  if constexpr (Type::kSubs == 8) add_neighbours(sums, of_32);
  Ints total = ints(0);
  STOKER_UNROLL for (int p = 0; p < kPairs<Type>; ++p) {
    total = dot2(total, pairs[p], word_of((Type::kSubs == 8 ? of_32 : sums) + 2 * p));
  }
  return total;
}
