// Written by scripts/fit-estimate.ts; in 1/1024 token.

/** A group of up to three digits is one token. */
export const digitGroupWeight = 1024

/**
 * A row of weights for each of `pieceKinds` in estimate.ts, whose comment explains the names. The first weight is for
 * each character beyond the last slot. The others are for pieces of 1, 2, … characters.
 */
// biome-ignore format: one kind is one line.
export const pieceWeights = new Int32Array([
  // Pieces of the kind: lower after blank
  157, 836, 899, 964, 1027, 1028, 1055, 1026, 1145, 1258, 1378, 1483, 1614, 1747, 1869, 1997,
  // Pieces of the kind: lower after mark
  555, 1147, 1254, 1390, 1344, 1349, 1462, 1539, 1593, 1712, 1796, 1901, 2000, 2107, 2231, 2368,
  // Pieces of the kind: lower alone
  59, 1159, 1152, 1138, 1091, 1187, 1267, 1345, 1392, 1507, 1630, 1764, 1905, 2037, 2165, 2286,
  // Pieces of the kind: Title after blank
  130, 983, 978, 966, 952, 990, 988, 1008, 1139, 1273, 1397, 1525, 1653, 1779, 1903, 2024,
  // Pieces of the kind: Title after mark
  123, 1050, 1053, 1059, 1011, 1015, 1131, 1251, 1376, 1508, 1633, 1756, 1880, 2004, 2127, 2250,
  // Pieces of the kind: Title alone
  132, 955, 947, 980, 927, 880, 998, 1087, 1209, 1362, 1507, 1662, 1816, 1953, 2082, 2210,
  // Pieces of the kind: UPPER after blank
  175, 976, 1004, 1147, 1273, 1400, 1521, 1641, 1769, 1893, 2009, 2131, 2252, 2377, 2502, 2626,
  // Pieces of the kind: UPPER after mark
  123, 1118, 1105, 1183, 1297, 1400, 1520, 1633, 1758, 1888, 2009, 2133, 2257, 2379, 2501, 2624,
  // Pieces of the kind: UPPER alone
  185, 1420, 1386, 1500, 1590, 1661, 1738, 1805, 1887, 1978, 2076, 2183, 2295, 2411, 2529, 2651,
  // Pieces of the kind: UPPERlower after blank
  123, 1015, 1014, 1135, 1258, 1380, 1500, 1619, 1738, 1860, 1981, 2108, 2234, 2359, 2484, 2609,
  // Pieces of the kind: UPPERlower after mark
  123, 1027, 1027, 1150, 1272, 1394, 1516, 1639, 1761, 1883, 2005, 2128, 2252, 2375, 2498, 2621,
  // Pieces of the kind: UPPERlower alone
  123, 1071, 1076, 1210, 1340, 1460, 1567, 1671, 1782, 1898, 2014, 2137, 2256, 2379, 2502, 2624,
  // Pieces of the kind: marks
  358, 1167, 1168, 1236, 1166, 1113, 1449, 1788, 2129, 2482, 2836, 3190, 3546, 3902, 4259, 4617,
  // Pieces of the kind: marks after blank
  358, 1169, 1198, 1149, 1163, 1131, 1107, 1081, 1422, 1767, 2116, 2467, 2818, 3170, 3530, 3889,
  // Pieces of the kind: marks before newline
  358, 776, 892, 878, 904, 946, 1329, 1705, 2073, 2439, 2803, 3165, 3525, 3885, 4245, 4604,
  // Pieces of the kind: marks after blank, before newline
  358, 609, 803, 859, 904, 938, 962, 978, 1348, 1715, 2079, 2440, 2799, 3156, 3518, 3878,
  // Pieces of the kind: one mark repeated
  176, 989, 995, 997, 1021, 1041, 1059, 1075, 1090, 1104, 1119, 1129, 1138, 1148, 1157, 1166,
  // Pieces of the kind: blanks
  0, 959, 932, 1007, 994, 969, 1012, 1055, 1046, 1066, 1094, 1120, 1070, 1029, 977, 917,
  // Pieces of the kind: newlines
  10, 860, 912, 951, 988, 1017, 1041, 1061, 1078, 1093, 1107, 1119, 1131, 1143, 1154, 1164,
])

/** Two weights for each script: one for each run of its characters, and one for each character in the run. */
// biome-ignore format: one script is one line.
export const scriptWeights = new Int32Array([
  433, 237, // accented
  496, 403, // greek
  669, 217, // cyrillic
  476, 333, // hebrew
  232, 420, // arabic
  563, 288, // indic
  490, 419, // southeastAsian
  398, 352, // otherLetters
  514, 508, // kana
  520, 537, // hangul
  556, 709, // han
  586, 586, // typographic
  531, 388, // symbols
  537, 563, // surrogates
])
