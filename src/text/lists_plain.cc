#include "text/lists.h"
#include "text/lists_common.h"

// Lists of categories alone, without tables of code points and without a difference between the cases.
namespace stoker::text::lists {
namespace {

// C|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr Rule kLlama3[] = {contractions(),        kWord,    repeat(kNumbers, 1, 3), kOthers, newlines(),
                            spaces_before_space(), kSpaceRun};

// The same with \p{N}
constexpr Rule kQwen2[] = {contractions(),        kWord,    repeat(kNumbers, 1, 1), kOthers, newlines(),
                           spaces_before_space(), kSpaceRun};

// C|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr CharClass kOtherNoMarks(kAll & ~(kSpace | kLetter | kMark | kNumber));
constexpr Rule kQwen35[] = {contractions(),
                            led(kLead, kLettersMarks),
                            repeat(kNumbers, 1, 1),
                            led(kBlank, kOtherNoMarks, kNewline),
                            newlines(),
                            spaces_before_space(),
                            kSpaceRun};

// [\p{P}\$\+<=>\^~\|]+ , and with the grave accent for Falcon
constexpr CharClass kPunctSome = CharClass(kPunct).with("$+<=>^~|");
constexpr CharClass kPunctFalcon = kPunctSome.with("`");
constexpr Rule kPunctRuns[] = {repeat(kPunctSome)};
constexpr Rule kPunctRunsFalcon[] = {repeat(kPunctFalcon)};
constexpr Rule kThreeDigits[] = {repeat(kAsciiDigits, 3, 3)};

// C|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr Rule kSeedCoder[] = {contractions(),        kWord,    repeat(kNumbers, 1, 1), led(kBlank, kOther), newlines(),
                               spaces_before_space(), kSpaceRun};

// [^\n]+|[\n]+
constexpr CharClass kLineFeed = CharClass().with("\n");
constexpr CharClass kNoLineFeed = kLineFeed.inverted();
constexpr Rule kLines[] = {repeat(kNoLineFeed), repeat(kLineFeed)};

// <sentinel:[0-9]+> , (IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z , ([\t\n]|    |  )
constexpr CharClass kGreater = CharClass().with(">");
constexpr CharClass kAToI = CharClass().with_range('A', 'I');
constexpr CharClass kZ = CharClass().with("Z");
constexpr CharClass kTabNewline = CharClass().with("\t\n");
constexpr CharClass kAnyPunct = CharClass(kPunct).with("$+<=>^`|~");
constexpr Rule kSentinel[] = {literal_run("<sentinel:", kAsciiDigits, kMany, kGreater)};
constexpr Rule kImage[] = {literal_run("IMGIMG", kAToI, 4, kZ)};
constexpr Rule kLayout[] = {repeat(kTabNewline, 1, 1), literal("    "), literal("  ")};
constexpr Rule kEachPunct[] = {repeat(kAnyPunct, 1, 1)};

// C|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr Rule kMiniCpm[] = {contractions(),        kWord,    repeat(kNumbers), kOthers, newlines(),
                             spaces_before_space(), kSpaceRun};

// C|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+
constexpr Rule kExaoneMoe[] = {contractions(),
                               spaced_letters(kLead),
                               repeat(kNumbers, 1, 1),
                               led(kBlank, kOther, kNewlineSlash, 1),
                               newlines(),
                               spaces_before_space(),
                               kSpaceRun};

// As kLlama3, but white space by powers of two: \s{512}(?!\S)|...|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}
constexpr Rule kJais2[] = {contractions(),
                           kWord,
                           repeat(kNumbers, 1, 3),
                           kOthers,
                           newlines(),
                           spaces_before_space(512, 512),
                           spaces_before_space(256, 256),
                           spaces_before_space(128, 128),
                           spaces_before_space(64, 64),
                           spaces_before_space(32, 32),
                           spaces_before_space(16, 16),
                           spaces_before_space(8, 8),
                           spaces_before_space(4, 4),
                           spaces_before_space(1, 2),
                           repeat(kSpaces, 1, 1)};

// \S+
constexpr CharClass kNoSpace(kAll & ~kSpace);
constexpr Rule kNoSpaces[] = {repeat(kNoSpace)};

// [^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr Rule kUfakzeka[] = {kWord, repeat(kNumbers, 1, 1), kOthers, newlines(), spaces_before_space(), kSpaceRun};

}  // namespace

constexpr Pass kR1[1] = {{kLlama3}};
constexpr Pass kR2[1] = {{kQwen2}};
constexpr Pass kR3[1] = {{kQwen35}};
constexpr Pass kR4[1] = {{kGpt2}};
constexpr Pass kR5[2] = {{kEachNumber}, {kGpt2}};
constexpr Pass kR6[4] = {{kPunctRuns}, {kGpt2}, {kNumberRuns}, {kThreeDigits}};
constexpr Pass kR7[3] = {{kPunctRunsFalcon}, {kGpt2}, {kThreeDigits}};
constexpr Pass kR16[2] = {{kNumberRuns}, {.rules = {}, .cut = cut_thousands}};
// '(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|... : possessive quantifiers and \s*[\r\n] change nothing in kQwen2.
constexpr Pass kR17[1] = {{kQwen2}};
constexpr Pass kR18[1] = {{kSeedCoder}};
constexpr Pass kR19[1] = {{kLines}};
constexpr Pass kR20[6] = {{kSentinel}, {kImage}, {kLayout}, {kEachNumber}, {kEachPunct}, {kGpt2}};
constexpr Pass kR21[2] = {{kUpTo3Numbers}, {kMiniCpm}};
constexpr Pass kR22[1] = {{kExaoneMoe}};
constexpr Pass kR23[2] = {{kLines}, {kQwen2}};
constexpr Pass kR24[1] = {{kJais2}};
constexpr Pass kR29[1] = {{kNoSpaces}};
constexpr Pass kR31[1] = {{kUfakzeka}};

}  // namespace stoker::text::lists
