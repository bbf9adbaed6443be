// java Verify.java <secret> <header> [unix seconds] < body    prints "ok" or the reason (Java 17 or newer)
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public final class Verify {
    private static final long TOLERANCE_SECONDS = 300;
    private static final String PART = "[a-z][a-z0-9]*=[!-+\\--~]+";

    /**
     * Returns "ok" or the reason for refusing. secret is the whole "whsec_..." string, header the value of
     * x-service-signature, rawBody the bytes as they arrived (never re-serialised JSON), now Unix seconds.
     */
    public static String verify(String secret, String header, byte[] rawBody, long now)
            throws GeneralSecurityException {
        if (!header.matches(PART + "(," + PART + ")*")) return "header_malformed";
        List<String> times = new ArrayList<>();
        List<String> signatures = new ArrayList<>();
        for (String part : header.split(",")) {
            String[] pair = part.split("=", 2);
            if (pair[0].equals("t")) times.add(pair[1]);
            if (pair[0].equals("v1")) signatures.add(pair[1]);
        }
        if (times.size() != 1 || !times.get(0).matches("0|[1-9][0-9]{0,11}")) return "header_malformed";
        if (signatures.isEmpty()) return "header_malformed";
        if (!signatures.stream().allMatch(hex -> hex.matches("[0-9a-f]{64}"))) return "header_malformed";

        long age = now - Long.parseLong(times.get(0));
        if (age > TOLERANCE_SECONDS) return "timestamp_too_old";
        if (age < -TOLERANCE_SECONDS) return "timestamp_too_new";

        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        mac.update((times.get(0) + ".").getBytes(StandardCharsets.UTF_8));
        byte[] expected = mac.doFinal(rawBody);
        for (String hex : signatures) {
            if (MessageDigest.isEqual(HexFormat.of().parseHex(hex), expected)) return "ok";
        }
        return "signature_mismatch";
    }

    public static void main(String[] args) throws Exception {
        long now = args.length > 2 ? Long.parseLong(args[2]) : System.currentTimeMillis() / 1000;
        String result = verify(args[0], args[1], System.in.readAllBytes(), now);
        System.out.println(result);
        System.exit(result.equals("ok") ? 0 : 1);
    }
}
