#include "text/lists.h"
#include "text/lists_common.h"

// Lists that tell upper from lower case, with the real categories: Lu Lt are upper, Ll lower, Lm Lo M both.
namespace stoker::text::lists {
namespace {

///  ?[^\s\p{L}\p{N}]+[\r\n/]*
constexpr Rule kOthersSlash = led(kBlank, kOther, kNewlineSlash);

// [^\r\n\p{L}\p{N}]?[U]*[L]+|[^\r\n\p{L}\p{N}]?[U]+[L]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr Rule kTekken[] = {cased_word(kLead, kUpperClass, kLowerClass, false),
                            repeat(kNumbers, 1, 1),
                            kOthersSlash,
                            newlines(),
                            spaces_before_space(),
                            kSpaceRun};

// The same with C? after each word and \p{N}{1,3}: o200k
constexpr Rule kGpt4o[] = {cased_word(kLead, kUpperClass, kLowerClass, true),
                           repeat(kNumbers, 1, 3),
                           kOthersSlash,
                           newlines(),
                           spaces_before_space(),
                           kSpaceRun};

// \p{Han}, the script, not the blocks (Scripts.txt of Unicode 15.1).
constexpr CodeRange kHanRanges[] = {{0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
                                    {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
                                    {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
                                    {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
                                    {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
                                    {0x30000, 0x3134A}, {0x31350, 0x323AF}};
constexpr CharClass kHan{std::span<const CodeRange>(kHanRanges)};
constexpr CharClass kUpperNoHan = CharClass(kUpper).without(kHanRanges);
constexpr CharClass kLowerNoHan = CharClass(kLower).without(kHanRanges);

// [\p{Han}]+|[^\r\n\p{L}\p{N}]?[U&&[^\p{Han}]]*[L&&[^\p{Han}]]+C?|[^\r\n\p{L}\p{N}]?[U&&[^\p{Han}]]+[L&&[^\p{Han}]]*C?
// |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr Rule kKimi[] = {repeat(kHan),
                          cased_word(kLead, kUpperNoHan, kLowerNoHan, true),
                          repeat(kNumbers, 1, 3),
                          kOthers,
                          newlines(),
                          spaces_before_space(),
                          kSpaceRun};

constexpr CodeRange kHangulRanges[] = {{0x3131, 0x318E}, {0xAC00, 0xD7A3}};
constexpr CodeRange kWidePunctRanges[] = {{0x2014, 0x2014}, {0x2018, 0x2019}, {0x201C, 0x201D},
                                          {0x2026, 0x2026}, {0x3001, 0x303F}, {0xFE30, 0xFE4F},
                                          {0xFF01, 0xFF01}, {0xFF0C, 0xFF0C}, {0xFF1A, 0xFF1B}};
constexpr CodeRange kBopomofoRanges[] = {{0x3105, 0x312F}};
constexpr CharClass kHangul{std::span<const CodeRange>(kHangulRanges)};
constexpr CharClass kWidePunct{std::span<const CodeRange>(kWidePunctRanges)};
constexpr CharClass kBopomofo{std::span<const CodeRange>(kBopomofoRanges)};
constexpr Rule kYoutuScripts[] = {repeat(kHangul), repeat(kWidePunct), repeat(kBopomofo), repeat(kHanKana)};
constexpr Rule kYoutu[] = {cased_word(kLead, kUpperClass, kLowerClass, true),
                           repeat(kNumbers, 1, 1),
                           kOthersSlash,
                           newlines(),
                           spaces_before_space(),
                           kSpaceRun};

// ((?=[\p{L}\p{M}])([^a-z]))*((?=[\p{L}\p{M}])([^A-Z]))+ and so on: case is that of ASCII only.
constexpr CharClass kNoAsciiLower = kLettersMarks.without_range('a', 'z');
constexpr CharClass kNoAsciiUpper = kLettersMarks.without_range('A', 'Z');
constexpr Rule kGranite[] = {cased_word(kLead, kNoAsciiLower, kNoAsciiUpper, true),
                             repeat(kNumbers, 1, 3),
                             kOthersSlash,
                             newlines(),
                             spaces_before_space(),
                             kSpaceRun};

}  // namespace

constexpr Pass kR11[1] = {{kTekken}};
constexpr Pass kR12[1] = {{kGpt4o}};
constexpr Pass kR13[1] = {{kKimi}};
constexpr Pass kR25[2] = {{kYoutuScripts}, {kYoutu}};
constexpr Pass kR26[2] = {{.rules = {}, .cut = cut_digit_groups}, {kGpt4o}};
constexpr Pass kR27[1] = {{kGranite}};

}  // namespace stoker::text::lists
