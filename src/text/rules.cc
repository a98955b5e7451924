#include "text/rules.h"

#include <algorithm>

namespace stoker::text::match {
namespace {

constexpr CharClass kLetterClass(kLetter);
constexpr CharClass kMarkClass(kMark);

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool is_suffix(char first, char second, size_t& size) {
  size = 3;
  if (second == 'e' && (first == 'r' || first == 'v')) return true;
  if (second == 'l' && first == 'l') return true;
  size = 2;
  return first == 's' || first == 't' || first == 'm' || first == 'd';
}

// The end of body{min,max}tail{0,tail_max}, kNoMatch when there are fewer than `min`.
size_t body_and_tail(const Rule& rule, const Scanner& scan, size_t pos) {
  size_t count;
  size_t end = scan.run(*rule.body, pos, rule.max, &count);
  if (count < rule.min) return kNoMatch;
  return rule.tail != nullptr ? scan.run(*rule.tail, end, rule.tail_max) : end;
}

// A run of `upper`, and where its last character that is also of `lower` ends (pos: nowhere).
struct UpperRun {
  size_t end, last_common;
};

UpperRun upper_run(const Rule& rule, const Scanner& scan, size_t pos) {
  UpperRun out{pos, pos};
  for (size_t end = scan.one(*rule.body, pos); end != out.end; end = scan.one(*rule.body, end)) {
    if (scan.one(*rule.tail, out.end) == end) out.last_common = end;
    out.end = end;
  }
  return out;
}

// upper*lower+: where `lower` does not follow, upper* gives back down to the last character that both classes have.
size_t upper_lower(const Rule& rule, const Scanner& scan, size_t pos) {
  UpperRun upper = upper_run(rule, scan, pos);
  size_t end = scan.run(*rule.tail, upper.end, kMany);
  if (end > upper.end) return end;
  return upper.last_common > pos ? upper.last_common : kNoMatch;
}

// upper+lower*, where upper*lower+ has been tried: no `lower` follows.
size_t upper_only(const Rule& rule, const Scanner& scan, size_t pos) {
  size_t end = scan.run(*rule.body, pos, kMany);
  return end > pos ? end : kNoMatch;
}

size_t letters_with_single_spaces(const Scanner& scan, size_t pos) {
  if (scan.one(kLetterClass, pos) == pos) return kNoMatch;
  for (;;) {
    size_t end = scan.run(kMarkClass, scan.run(kLetterClass, pos, kMany), kMany);
    if (end == pos && scan.at(end) == ' ' && scan.one(kLetterClass, end + 1) > end + 1) ++end;
    if (end == pos) return end;
    pos = end;
  }
}

}  // namespace

size_t sequence(const Rule& rule, Scanner& scan, size_t pos) {
  if (rule.lead != nullptr) {
    size_t after = scan.one(*rule.lead, pos);
    size_t end = after > pos ? body_and_tail(rule, scan, after) : kNoMatch;
    if (end != kNoMatch) return end;
  }
  return body_and_tail(rule, scan, pos);
}

size_t after(const Rule& rule, Scanner& scan, size_t pos) {
  size_t begin = scan.one(*rule.lead, pos);
  return begin > pos ? body_and_tail(rule, scan, begin) : kNoMatch;
}

size_t contraction(const Rule& rule, Scanner& scan, size_t pos) {
  if (scan.at(pos) != '\'') return kNoMatch;
  bool lower_only = rule.min != 0;
  char first = scan.at(pos + 1), second = scan.at(pos + 2);
  size_t size;
  bool hit = lower_only ? is_suffix(first, second, size) : is_suffix(lower(first), lower(second), size);
  return hit ? pos + size : kNoMatch;
}

size_t cased_word(const Rule& rule, Scanner& scan, size_t pos) {
  size_t after = scan.one(*rule.lead, pos);
  size_t end = after > pos ? upper_lower(rule, scan, after) : kNoMatch;
  if (end == kNoMatch) end = upper_lower(rule, scan, pos);
  if (end == kNoMatch && after > pos) end = upper_only(rule, scan, after);
  if (end == kNoMatch) end = upper_only(rule, scan, pos);
  if (end == kNoMatch || rule.min == 0) return end;
  size_t suffix = contraction({.match = nullptr, .min = 0}, scan, end);
  return suffix != kNoMatch ? suffix : end;
}

size_t spaced_letters(const Rule& rule, Scanner& scan, size_t pos) {
  size_t after = scan.one(*rule.lead, pos);
  size_t end = after > pos ? letters_with_single_spaces(scan, after) : kNoMatch;
  return end != kNoMatch ? end : letters_with_single_spaces(scan, pos);
}

size_t newlines(const Rule&, Scanner& scan, size_t pos) {
  if (scan.one(kSpaceClass, pos) == pos) return kNoMatch;
  size_t end = scan.space(pos).newline_end;
  return end > pos ? end : kNoMatch;
}

size_t spaces_before_space(const Rule& rule, Scanner& scan, size_t pos) {
  if (scan.one(kSpaceClass, pos) == pos) return kNoMatch;
  const Scanner::Space& space = scan.space(pos);
  // All but the last character of the run may be taken, and the last one too where the text ends with it.
  size_t limit = space.end == scan.size() ? space.end : space.last;
  if (rule.max == kMany) return limit > pos ? limit : kNoMatch;
  size_t count = 0, end = pos;
  for (; count < rule.max && end < limit; ++count) end = scan.next(end);
  return count >= rule.min ? end : kNoMatch;
}

size_t spaces_at_end(const Rule&, Scanner& scan, size_t pos) {
  if (scan.one(kSpaceClass, pos) == pos) return kNoMatch;
  size_t end = scan.space(pos).end;
  return end == scan.size() ? end : kNoMatch;
}

size_t literal(const Rule& rule, Scanner& scan, size_t pos) {
  return scan.text().substr(pos).starts_with(rule.literal) ? pos + rule.literal.size() : kNoMatch;
}

size_t literal_run(const Rule& rule, Scanner& scan, size_t pos) {
  if (literal(rule, scan, pos) == kNoMatch) return kNoMatch;
  size_t begin = pos + rule.literal.size();
  size_t end = scan.run(*rule.body, begin, rule.max);
  if (end == begin) return kNoMatch;
  size_t after = scan.one(*rule.tail, end);
  return after > end ? after : kNoMatch;
}

}  // namespace stoker::text::match
