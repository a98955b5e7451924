// Sums of activations times the sub-scales or minimums of a 256-block.

// Factors of the sums of 16 activations 2 p and 2 p + 1 in the low and the high half of every lane.
// factor(j) is that of sub-block j.
template <class Type, class F>
STOKER_INLINE void pair_up(F factor, Ints (&pairs)[8]) {
  STOKER_UNROLL for (int p = 0; p < 8; ++p) {
    const Ints low = factor(Type::kSubs == 8 ? p : 2 * p);
    pairs[p] = pair(low, Type::kSubs == 8 ? low : factor(2 * p + 1));
  }
}

STOKER_INLINE Ints weigh_sums(const Ints (&pairs)[8], const int16_t* sums) {
  Ints total = ints(0);
  STOKER_UNROLL for (int p = 0; p < 8; ++p) total = dot2(total, pairs[p], word_of(sums + 2 * p));
  return total;
}
