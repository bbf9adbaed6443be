import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;

/** Calls the function of the snippet for each line of its input: secret, header and body in Base64, and the time. */
public final class VerifyAll {
    public static void main(String[] args) throws Exception {
        Base64.Decoder decoder = Base64.getDecoder();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t", -1);
            String secret = new String(decoder.decode(parts[0]), "UTF-8");
            String header = new String(decoder.decode(parts[1]), "UTF-8");
            System.out.println(Verify.verify(secret, header, decoder.decode(parts[2]), Long.parseLong(parts[3])));
        }
    }
}
