#include "quant/q8_0.h"

#include <algorithm>

namespace stoker::quant {

void Q8_0::levels(const Block& block, int8_t* q) { std::copy_n(block.qs, kWeights, q); }

}  // namespace stoker::quant
