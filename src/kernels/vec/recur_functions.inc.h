// The functions of table.h on top of vec/recur.inc.h.

void convolve(const ConvolveArgs& a) noexcept {
  if (a.taps == 4) {
    convolve_all<4>(a);
  } else if (a.taps == 3) {
    convolve_all<3>(a);
  } else {
    convolve_all<2>(a);
  }
}

void recur(const RecurArgs& a) noexcept {
  int64_t column = 0;
  for (; column + 32 <= a.v_dim; column += 32) recur_columns<32 / kWidth>(a, column);
  if (column < a.v_dim) recur_columns<16 / kWidth>(a, column);
}
