#pragma once

#include "text/pattern.h"

namespace stoker::text {

// The alternatives that pre-tokenizer expressions are made of, each with the expression that it stands for.
// Quantifiers are greedy; where an expression would go back, the function works out where it would end up.
namespace match {
size_t sequence(const Rule& rule, Scanner& scan, size_t pos);
size_t after(const Rule& rule, Scanner& scan, size_t pos);
size_t contraction(const Rule& rule, Scanner& scan, size_t pos);
size_t cased_word(const Rule& rule, Scanner& scan, size_t pos);
size_t spaced_letters(const Rule& rule, Scanner& scan, size_t pos);
size_t newlines(const Rule& rule, Scanner& scan, size_t pos);
size_t spaces_before_space(const Rule& rule, Scanner& scan, size_t pos);
size_t spaces_at_end(const Rule& rule, Scanner& scan, size_t pos);
size_t literal(const Rule& rule, Scanner& scan, size_t pos);
size_t literal_run(const Rule& rule, Scanner& scan, size_t pos);
}  // namespace match

/// body{min,max}
constexpr Rule repeat(const CharClass& body, size_t min = 1, size_t max = kMany) {
  return {.match = match::sequence, .body = &body, .min = min, .max = max};
}
/// lead?body+
constexpr Rule led(const CharClass& lead, const CharClass& body) {
  return {.match = match::sequence, .lead = &lead, .body = &body};
}
/// lead?body+tail{0,tail_max}
constexpr Rule led(const CharClass& lead, const CharClass& body, const CharClass& tail, size_t tail_max = kMany) {
  return {.match = match::sequence, .lead = &lead, .body = &body, .tail = &tail, .tail_max = tail_max};
}
/// lead body+
constexpr Rule after(const CharClass& lead, const CharClass& body) {
  return {.match = match::after, .lead = &lead, .body = &body};
}
/// '(?:s|t|re|ve|m|ll|d), both cases of ASCII or lower case only
constexpr Rule contractions(bool lower_only = false) {
  return {.match = match::contraction, .min = lower_only ? size_t{1} : size_t{0}};
}
/// lead?upper*lower+ and then lead?upper+lower*; with `suffix`, each with an optional contraction behind.
constexpr Rule cased_word(const CharClass& lead, const CharClass& upper, const CharClass& lower, bool suffix) {
  return {
      .match = match::cased_word, .lead = &lead, .body = &upper, .tail = &lower, .min = suffix ? size_t{1} : size_t{0}};
}
/// lead?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+
constexpr Rule spaced_letters(const CharClass& lead) { return {.match = match::spaced_letters, .lead = &lead}; }
/// \s*[\r\n]+ , which is also what \s*[\r\n] matches
constexpr Rule newlines() { return {.match = match::newlines}; }
/// \s{min,max}(?!\S)
constexpr Rule spaces_before_space(size_t min = 1, size_t max = kMany) {
  return {.match = match::spaces_before_space, .min = min, .max = max};
}
/// \s+$
constexpr Rule spaces_at_end() { return {.match = match::spaces_at_end}; }
/// The text itself.
constexpr Rule literal(std::string_view text) { return {.match = match::literal, .literal = text}; }
/// The text, body{1,max}, and then the character `last`, which is not in `body`.
constexpr Rule literal_run(std::string_view text, const CharClass& body, size_t max, const CharClass& last) {
  return {.match = match::literal_run, .body = &body, .tail = &last, .max = max, .literal = text};
}

}  // namespace stoker::text
