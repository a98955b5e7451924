#pragma once

#include "text/pattern.h"

namespace stoker::text::lists {

// The lists of expressions, numbered as in docs/tokenizers.md#lists, one per family of vocabularies.
extern const Pass kR1[1], kR2[1], kR3[1], kR4[1], kR5[2], kR6[4], kR7[3], kR8[6], kR9[5], kR10[3], kR11[1], kR12[1],
    kR13[1], kR14[1], kR15[2], kR16[2], kR17[1], kR18[1], kR19[1], kR20[6], kR21[2], kR22[1], kR23[2], kR24[1], kR25[2],
    kR26[2], kR27[1], kR28[3], kR29[1], kR30[4], kR31[1];

// Expressions over runs of digits that look at where the run ends.

/// (?=(\d{3})+(?!\d)): digits in threes from the right, nothing set apart from what is around them.
void cut_thousands(std::string_view text, PieceSink& sink);
/// \d{1,3}(?=(?:\d{3})*\b): groups from the right, each by itself, where no word character follows the digits.
void cut_digit_groups(std::string_view text, PieceSink& sink);
/// \p{N} in threes from the right; what stands before the run stays with its first group.
void cut_number_groups(std::string_view text, PieceSink& sink);

}  // namespace stoker::text::lists
