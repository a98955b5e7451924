#pragma once

#include "text/rules.h"

namespace stoker::text::lists {

// Classes and rules that many lists share. In the comments C is contractions().
inline constexpr CharClass kLetters(kLetter);
inline constexpr CharClass kLettersMarks(kLetter | kMark);
inline constexpr CharClass kNumbers(kNumber);
inline constexpr CharClass kSpaces(kSpace);
inline constexpr CharClass kBlank = CharClass().with(" ");
inline constexpr CharClass kNewline = CharClass().with("\r\n");
inline constexpr CharClass kNewlineSlash = CharClass().with("\r\n/");
/// [^\r\n\p{L}\p{N}]
inline constexpr CharClass kLead = CharClass(kAll & ~(kLetter | kNumber)).without("\r\n");
/// [^\s\p{L}\p{N}]
inline constexpr CharClass kOther(kAll & ~(kSpace | kLetter | kNumber));
inline constexpr CharClass kUpperClass(kUpper);
inline constexpr CharClass kLowerClass(kLower);
inline constexpr CharClass kAsciiLetters = CharClass().with_range('a', 'z').with_range('A', 'Z');
inline constexpr CharClass kAsciiDigits = CharClass().with_range('0', '9');
/// [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]
inline constexpr CharClass kAsciiPunct =
    CharClass().with_range('!', '/').with_range(':', '@').with_range('[', '`').with_range('{', '~');

inline constexpr CodeRange kHanKanaRanges[] = {{0x3040, 0x30FF}, {0x4E00, 0x9FA5}};
inline constexpr CharClass kHanKana{std::span<const CodeRange>(kHanKanaRanges)};

/// [^\r\n\p{L}\p{N}]?\p{L}+
inline constexpr Rule kWord = led(kLead, kLetters);
///  ?[^\s\p{L}\p{N}]+[\r\n]*
inline constexpr Rule kOthers = led(kBlank, kOther, kNewline);
/// \s+
inline constexpr Rule kSpaceRun = repeat(kSpaces);

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)
inline constexpr Rule kGpt2[] = {contractions(true), led(kBlank, kLetters), led(kBlank, kNumbers), led(kBlank, kOther),
                                 spaces_before_space()};
inline constexpr Rule kNumberRuns[] = {repeat(kNumbers)};
inline constexpr Rule kEachNumber[] = {repeat(kNumbers, 1, 1)};
inline constexpr Rule kUpTo3Numbers[] = {repeat(kNumbers, 1, 3)};

}  // namespace stoker::text::lists
