#include "text/lists.h"
#include "text/lists_common.h"

// Lists with tables of code points for single scripts.
namespace stoker::text::lists {
namespace {

// Letters with case and their like, as DeepSeek LLM lists them (next to A-Z and a-z).
constexpr CodeRange kCasedRanges[] = {
    {0xB5, 0xB5},       {0xC0, 0xD6},       {0xD8, 0xF6},       {0xF8, 0x1BA},      {0x1BC, 0x1BF},
    {0x1C4, 0x293},     {0x295, 0x2AF},     {0x370, 0x373},     {0x376, 0x376},     {0x377, 0x377},
    {0x37B, 0x37D},     {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},     {0x38C, 0x38C},
    {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},     {0x48A, 0x52F},     {0x531, 0x556},
    {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},   {0x1C90, 0x1CBA},   {0x1CBD, 0x1CBF},
    {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},   {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},   {0x1F18, 0x1F1D},
    {0x1F20, 0x1F45},   {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},   {0x1F5B, 0x1F5B},
    {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},   {0x1FBE, 0x1FBE},
    {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},   {0x1FD6, 0x1FDB},   {0x1FE0, 0x1FEC},
    {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},   {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210A, 0x2113},
    {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},   {0x2128, 0x2128},
    {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},   {0x2145, 0x2149},
    {0x214E, 0x214E},   {0x2183, 0x2183},   {0x2184, 0x2184},   {0x2C00, 0x2C7B},   {0x2C7E, 0x2CE4},
    {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF2},   {0x2CF3, 0x2CF3},   {0xA640, 0xA66D},   {0xA680, 0xA69B},
    {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},   {0xAB70, 0xABBF},   {0xFB00, 0xFB06},
    {0xFB13, 0xFB17},   {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},   {0x10400, 0x1044F}, {0x104B0, 0x104D3},
    {0x104D8, 0x104FB}, {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943}};
constexpr CodeRange kQuoteRanges[] = {{0x2018, 0x201F}, {0x3000, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}};
constexpr CodeRange kEastRanges[] = {{0x0800, 0x9FA5}, {0xAC00, 0xD7FF}};
constexpr CharClass kCased =
    CharClass{std::span<const CodeRange>(kCasedRanges)}.with_range('a', 'z').with_range('A', 'Z');
// [!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]
constexpr CharClass kQuotes =
    CharClass{std::span<const CodeRange>(kQuoteRanges)}.with_range('!', '/').with_range(':', '~');
constexpr CharClass kEast{std::span<const CodeRange>(kEastRanges)};
constexpr CharClass kPunctClass(kPunct);

constexpr Rule kEachNewline[] = {repeat(kNewline, 1, 1)};
constexpr Rule kCasedWords[] = {led(kSpaces, kCased)};
constexpr Rule kQuoteRuns[] = {led(kSpaces, kQuotes)};
constexpr Rule kSpacesAtEnd[] = {spaces_at_end()};
constexpr Rule kEastRuns[] = {repeat(kEast)};
constexpr Rule kAnyWords[] = {led(kSpaces, kLetters)};
constexpr Rule kSpacedPunctRuns[] = {led(kSpaces, kPunctClass)};

constexpr Rule kHanKanaRuns[] = {repeat(kHanKana)};

// [ASCII punctuation][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr CharClass kPunctSymbol(kPunct | kSymbol);
constexpr CharClass kLeadV3 = CharClass(kAll & ~(kLetter | kPunct | kSymbol)).without("\r\n");
constexpr Rule kDeepseek3[] = {after(kAsciiPunct, kAsciiLetters),
                               led(kLeadV3, kLettersMarks),
                               led(kBlank, kPunctSymbol, kNewline),
                               newlines(),
                               spaces_before_space(),
                               kSpaceRun};

// The same with newlines one by one, none of them after punctuation.
constexpr Rule kSpark[] = {after(kAsciiPunct, kAsciiLetters),
                           led(kLeadV3, kLettersMarks),
                           led(kBlank, kPunctSymbol),
                           repeat(kNewline, 1, 1),
                           spaces_before_space(),
                           kSpaceRun};

//  ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+
constexpr CodeRange kStopRanges[] = {{0x060C, 0x060C}, {0x06D4, 0x06D4}, {0x0964, 0x0964},
                                     {0x2026, 0x2026}, {0x3001, 0x3002}, {0xFF0C, 0xFF0C}};
constexpr CharClass kNoStop = CharClass(kAll & ~kSpace).without("(|.,!?)").without(kStopRanges);
constexpr Rule kBloom[] = {led(kBlank, kNoStop)};

// Scripts without spaces between words. 8C48-FAFF is what the published source says; F900-FAFF was meant.
constexpr CodeRange kAfmoeRanges[] = {{0x0E40, 0x0EFF}, {0x1000, 0x109F}, {0x1100, 0x11FF},
                                      {0x1780, 0x17FF}, {0x2F00, 0x2FDF}, {0x3040, 0x30FF},
                                      {0x3400, 0x4DBF}, {0x4E00, 0xFAFF}, {0xFF65, 0xFF9F}};
constexpr CharClass kAfmoeScripts{std::span<const CodeRange>(kAfmoeRanges)};
constexpr Rule kAfmoeRuns[] = {repeat(kAfmoeScripts)};

}  // namespace

constexpr Pass kR8[6] = {{kEachNewline}, {kCasedWords}, {kQuoteRuns}, {kSpacesAtEnd}, {kEastRuns}, {kNumberRuns}};
constexpr Pass kR9[5] = {{kEachNewline}, {kAnyWords}, {kSpacedPunctRuns}, {kEastRuns}, {kEachNumber}};
constexpr Pass kR10[3] = {{kUpTo3Numbers}, {kHanKanaRuns}, {kDeepseek3}};
constexpr Pass kR14[1] = {{kBloom}};
constexpr Pass kR15[2] = {{kBloom}, {kEachNumber}};
constexpr Pass kR28[3] = {{.rules = {}, .cut = cut_number_groups}, {kAfmoeRuns}, {kDeepseek3}};
constexpr Pass kR30[4] = {{kUpTo3Numbers}, {kHanKanaRuns}, {kSpark}, {kEachNumber}};

}  // namespace stoker::text::lists
